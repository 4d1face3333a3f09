"""Pictures of plain data: curves, rows with intervals, maps. Matplotlib is loaded when one is drawn."""
