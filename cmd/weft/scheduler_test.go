package main

import "testing"

func TestScheduler_printedConfigIsTheExampleAndValid(t *testing.T) { printsTheExample(t, "scheduler") }
