package service

import (
	"errors"
	"fmt"
	"testing"
)

func TestRepairs_theLatestInWords(t *testing.T) {
	var r Repairs
	r.Add()
	r.Add("repair 0", "repair 1")
	early := r.Copy()
	for i := 2; i < 40; i++ {
		r.Add(fmt.Sprint("repair ", i))
		if r.Count != uint64(i+1) || len(r.Last) > maxRepairs || r.Last[len(r.Last)-1] != fmt.Sprint("repair ", i) {
			t.Fatalf("after %d: %+v", i, r)
		}
	}
	if r.Last[0] != "repair 24" {
		t.Errorf("the oldest of the latest: %q", r.Last[0])
	}
	if early.Count != 2 || len(early.Last) != 2 || early.Last[0] != "repair 0" {
		t.Errorf("the copy has changed: %+v", early)
	}
}

func TestOneLine(t *testing.T) {
	if got := OneLine(errors.Join(errors.New("a"), errors.New("b")).Error()); got != "a; b" {
		t.Errorf("%q", got)
	}
}
