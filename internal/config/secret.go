package config

import (
	"encoding/base64"
	"fmt"
	"strings"
)

// maxKeyFile bounds a key file in bytes: 44 in base64, and blanks.
const maxKeyFile = 4096

// Secret reads a secret of 32 bytes in base64, as weft keygen makes them. text is the value
// of the key with the full name key, which holds the secret itself. file is the value of
// key_file, which names a file that holds it. who is the name in errors of the program that
// must be able to read that file. If both are empty, given is false and the secret is all
// zeros. No error contains any of the secret.
func (l Lines) Secret(key, text, file, who string) (secret [32]byte, given bool, err error) {
	switch {
	case text != "" && file != "":
		return secret, false, l.Errorf(key, "and %s_file are both given; remove one", key[strings.LastIndexByte(key, '.')+1:])
	case file != "":
		key += "_file"
		b, err := read(file, maxKeyFile)
		if err != nil {
			return secret, false, l.Errorf(key, "%w; %s must be able to read it, and weft keygen makes one", err, who)
		}
		text = strings.TrimSpace(string(b))
	case text == "":
		return secret, false, nil
	}
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(b) != len(secret) || [32]byte(b) == secret {
		return secret, false, l.Errorf(key, "is not 32 bytes in base64; weft keygen makes a key")
	}
	return [32]byte(b), true, nil
}

// maxPassword is what TCP takes for a key (RFC 2385; TCP_MD5SIG_MAXKEYLEN).
const maxPassword = 80

// ReadPassword reads a file that holds a password of at most 80 bytes, with or without a
// line's end. No error contains any of it.
func ReadPassword(file string) (string, error) {
	b, err := read(file, maxKeyFile)
	if err != nil {
		return "", err
	}
	password := strings.TrimRight(string(b), "\r\n")
	if password == "" || len(password) > maxPassword || strings.ContainsAny(password, "\r\n") {
		return "", fmt.Errorf("%s: must hold one line of 1 to %d bytes", file, maxPassword)
	}
	return password, nil
}
