// Package updatekeys reads the keys of topology updates from configuration files,
// those of switches and of hosts.
package updatekeys

import (
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"time"

	"weft/internal/strictyaml"
	"weft/topoupdate"
)

// Key is a secret, and when messages begin to be signed with it.
type Key struct {
	ID      int       `yaml:"id"`       // 1 to 255
	Key     string    `yaml:"key"`      // 32 bytes in base64
	KeyFile string    `yaml:"key_file"` // or a file with that
	From    time.Time `yaml:"from"`     // RFC 3339; none: at once

	secret [32]byte
}

// Read resolves keys, the values of a list called name in a file. who is the
// program that must be able to read key files.
func Read(keys []Key, l strictyaml.Lines, name, who string) error {
	for i := range keys {
		if err := keys[i].read(l, fmt.Sprintf("%s[%d]", name, i), who); err != nil {
			return err
		}
	}
	all := Keys(keys, false, time.Time{})
	if err := all.Validate(); err != nil {
		return l.Errorf(name, "%w", err)
	}
	return nil
}

func (k *Key) read(l strictyaml.Lines, name, who string) error {
	if k.ID < 1 || k.ID > 255 {
		return l.Errorf(name+".id", "is %d, must be from 1 to 255", k.ID)
	}
	text, at := k.Key, name+".key"
	switch {
	case k.Key != "" && k.KeyFile != "":
		return l.Errorf(at, "and key_file are both given; remove one")
	case k.KeyFile != "":
		at = name + ".key_file"
		b, err := os.ReadFile(k.KeyFile)
		if err != nil {
			return l.Errorf(at, "%w; %s must be able to read it", err, who)
		}
		text = strings.TrimSpace(string(b))
	case k.Key == "":
		return l.Errorf(name, "has neither key nor key_file; give one")
	}
	secret, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(secret) != len(k.secret) || [32]byte(secret) == [32]byte{} { // without the text: it is a secret, if a broken one
		return l.Errorf(at, "is not 32 bytes in base64; weft keygen makes a key")
	}
	k.secret = [32]byte(secret)
	return nil
}

// Keys returns the keys on a clock that begins at start.
func Keys(keys []Key, acceptUnsigned bool, start time.Time) topoupdate.Keys {
	all := topoupdate.Keys{AcceptUnsigned: acceptUnsigned}
	for _, k := range keys {
		var from time.Duration
		if !k.From.IsZero() {
			from = k.From.Sub(start)
		}
		all.List = append(all.List, topoupdate.Key{ID: uint8(k.ID), Secret: k.secret[:], From: from})
	}
	return all
}
