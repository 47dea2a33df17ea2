package main

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"weft/internal/exitcode"
)

// Who interrupts weft hears of what is left behind.
func TestInterruption(t *testing.T) {
	left := errors.New("netns weft-a: busy")
	for _, c := range []struct {
		err  error
		want string
	}{
		{context.Canceled, "interrupted"},
		{fmt.Errorf("lab: wait: %w", context.Canceled), "interrupted"},
		{errors.Join(context.Canceled, left), "interrupted; netns weft-a: busy"},
		{exitcode.AsAbsent(fmt.Errorf("lab: %w", errors.Join(fmt.Errorf("ping: %w", context.Canceled), fmt.Errorf("clean up: %w", left)))), "interrupted; clean up: netns weft-a: busy"},
	} {
		if got := interruption(c.err); got != c.want {
			t.Errorf("of %q it says %q, not %q", c.err, got, c.want)
		}
	}
}
