package main

import (
	"context"
	"errors"
	"strings"
)

// interruption says that weft was interrupted, and what went wrong besides, such as while it
// cleaned up.
func interruption(err error) string {
	text := "interrupted"
	for _, other := range besides(err) {
		text += "; " + strings.TrimPrefix(other.Error(), "weft: ")
	}
	return text
}

// besides returns the errors in one that are not the interruption itself.
func besides(err error) (all []error) {
	if !errors.Is(err, context.Canceled) {
		return []error{err}
	}
	switch e := err.(type) {
	case interface{ Unwrap() []error }:
		for _, part := range e.Unwrap() {
			all = append(all, besides(part)...)
		}
	case interface{ Unwrap() error }:
		all = besides(e.Unwrap())
	}
	return all
}
