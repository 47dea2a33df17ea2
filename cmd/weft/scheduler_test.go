package main

import "testing"

func TestScheduler_printedConfigIsTheExampleAndValid(t *testing.T) {
	printsTheExample(t, "scheduler", "keys: []\n", "keys:\n- {id: 1, key: c3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3M=}\n")
}
