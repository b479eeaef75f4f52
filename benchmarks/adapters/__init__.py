"""What calls of frameworks cost with our classes and with their own."""
