"""What each verb of the journal means, written once as generators that yield requests."""
