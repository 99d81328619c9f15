"""The controller: projects, runs and processes, and the web page over all of it."""
