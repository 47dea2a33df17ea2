package config

import (
	"fmt"
	"time"

	"weft/topoupdate"
)

// UpdateKey is a secret of topology updates in the file of a switch or a host, with the
// time from which messages are signed with it.
type UpdateKey struct {
	ID      int       `yaml:"id"`       // 1 to 255
	Key     string    `yaml:"key"`      // 32 bytes in base64
	KeyFile string    `yaml:"key_file"` // or a file with that
	From    time.Time `yaml:"from"`     // RFC 3339; none: at once

	secret [32]byte
}

// ReadUpdateKeys reads the secrets of keys, the list called name in a file. who is the name
// in errors of the program that must be able to read key files.
func ReadUpdateKeys(keys []UpdateKey, l Lines, name, who string) error {
	for i := range keys {
		if err := keys[i].read(l, fmt.Sprintf("%s[%d]", name, i), who); err != nil {
			return err
		}
	}
	all := UpdateKeys(keys, false, time.Time{})
	if err := all.Validate(); err != nil {
		return l.Errorf(name, "%w", err)
	}
	return nil
}

func (k *UpdateKey) read(l Lines, name, who string) error {
	if k.ID < 1 || k.ID > 255 {
		return l.Errorf(name+".id", "is %d, must be from 1 to 255", k.ID)
	}
	secret, given, err := l.Secret(name+".key", k.Key, k.KeyFile, who)
	if err == nil && !given {
		err = l.Errorf(name, "has neither key nor key_file; give one")
	}
	k.secret = secret
	return err
}

// UpdateKeys returns keys that ReadUpdateKeys has read, with times on a clock that begins
// at start.
func UpdateKeys(keys []UpdateKey, acceptUnsigned bool, start time.Time) topoupdate.Keys {
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
