package main

import (
	"weft/internal/live"
	"weft/internal/live/source"
)

// awaitLab is the source of a lab that may come up later.
func awaitLab(name string) (live.Source, error) { return source.AwaitLab(name), nil }
