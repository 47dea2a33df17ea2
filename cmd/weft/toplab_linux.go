package main

import (
	"weft/internal/live"
	"weft/internal/live/source"
)

// openLabSource opens a lab to look at.
func openLabSource(name string) (live.Source, error) { return source.OpenLab(name, live.KindLab) }
