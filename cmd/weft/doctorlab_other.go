//go:build !linux

package main

import (
	"context"
	"errors"

	"weft/internal/doctor"
	"weft/internal/doctor/gather"
)

// examineLab fails: labs are for Linux.
func examineLab(context.Context, string, gather.Options) (string, []doctor.Finding, error) {
	return "", nil, ended{errors.New("doctor: labs are for Linux; --ssh names machines to look at"), statusNothing}
}
