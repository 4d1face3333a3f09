"""The commands, a module each; `group` loads the one that is called."""
