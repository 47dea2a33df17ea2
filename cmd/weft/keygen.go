package main

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"weft/mesh/keyfile"
)

// keyBytes is how long a secret is, of topology updates and of tunnels.
const keyBytes = 32

func newKeygenCmd() *cobra.Command {
	var out, public string
	cmd := &cobra.Command{
		Use:   "keygen",
		Short: "Make a key for topology updates, or for a tunnel",
		Long: `Keygen makes a new random key, 32 bytes in base64, as key files have it: those of
failures.keys and udp.peers of weft host, and of keys of weft switch. Switches and
hosts of a fabric share the keys of updates; the two ends of a tunnel share theirs.
In a mesh each host has one of its own (udp.private_key_file). --public prints what
others may know of such a key, as a DNS directory has it: generation:key.`,
		Example: "  weft keygen --out /etc/weft/updates-1.key\n  weft keygen --public /etc/weft/mesh.key",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case public != "" && out != "":
				return usagef("--public and --out are both given: --out makes a key, and --public prints a part of one that is there")
			case public != "":
				return publicKey(cmd.OutOrStdout(), public)
			case out == "":
				return writeKey(cmd.OutOrStdout())
			}
			return keyFile(out)
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "new `file` for the key, for its owner alone to read (default: print it)")
	cmd.Flags().StringVar(&public, "public", "", "`file` of a private key, whose public key is printed")
	return cmd
}

// publicKey prints the public key of a private one, of two that of the one in use.
func publicKey(w io.Writer, file string) error {
	keys, err := keyfile.Read(file)
	if err != nil {
		return usagef("--public=%s: %w", file, err)
	}
	k := keys[0].Public()
	_, err = fmt.Fprintf(w, "%d:%v\n", k.Generation, k)
	return err
}

func writeKey(w io.Writer) error {
	var secret [keyBytes]byte
	rand.Read(secret[:]) // it never fails
	_, err := fmt.Fprintln(w, base64.StdEncoding.EncodeToString(secret[:]))
	return err
}

// keyFile writes a key to a new file. It refuses a file that exists, so that no key in use
// is lost.
func keyFile(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return usagef("--out=%s: the file is there already, and may be a key in use; name another one, or remove it", path)
	case err != nil:
		return cannotWrite("out", path, err)
	}
	err = errors.Join(f.Chmod(0o600), writeKey(f), f.Sync()) // whatever the umask is
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(fmt.Errorf("--out=%s: %w", path, err), os.Remove(path))
	}
	return nil
}
