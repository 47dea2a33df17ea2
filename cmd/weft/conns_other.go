//go:build !linux

package main

import "errors"

func connections() ([]conn, error) {
	return nil, errors.New("needs the socket tables of Linux; run it on the host whose connections they are")
}
