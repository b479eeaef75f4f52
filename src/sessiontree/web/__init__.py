"""The viewer in the browser: ``sessiontree web``.

HTML is rendered here, by the same renderers as the HTML export; small scripts do what must move. ``pages/`` has one module
for each page, ``panes/`` what several of them show, ``static/`` the styles and scripts.
"""
