"""The commands, a module each; `priorveil.cli` loads the one that is called."""
