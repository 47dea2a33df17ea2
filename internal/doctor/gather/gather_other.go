//go:build !linux

package gather

import (
	"context"
	"errors"

	"weft/internal/doctor"
)

// Facts fails: weft's daemons are for Linux.
func Facts(context.Context, Options) (*doctor.Facts, error) {
	return nil, errors.New("doctor: the daemons are for Linux, and there is nothing to check elsewhere")
}
