package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"weft/internal/capture"
	"weft/internal/capture/file"
	"weft/internal/capture/session"
)

// errFull ends a file that is read.
var errFull = errors.New("full")

func newCaptureReadCmd() *cobra.Command {
	var f captureFlags
	cmd := &cobra.Command{
		Use:   "read FILE",
		Short: "Print, filter and convert a capture",
		Long: `Read takes a pcapng file, of weft capture or of another program, annotates its packets as weft
capture does, and prints a line for each. It writes those that the filter wants to another file
(--write), and makes a timeline of connections (--trace), which chrome://tracing and
ui.perfetto.dev open. What weft capture has noted of the resequencer is kept.`,
		Example: "  weft capture read run.pcapng --port 5201\n" +
			"  weft capture read run.pcapng --flow 10.0.0.2:40000-10.3.1.3:5201 --trace run.json",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			filter, err := f.check()
			if err != nil {
				return err
			}
			t, err := f.fabric()
			if err != nil {
				return err
			}
			in, err := os.Open(args[0])
			if err != nil {
				return usagef("capture read: %q cannot be read: %w; name a capture", args[0], plainError(err))
			}
			defer in.Close()
			s, err := f.open(cmd.OutOrStdout())
			if err != nil {
				return err
			}
			a, res := f.annotator(t), session.Result{}
			skipped, err := file.Read(in, func(r *capture.Record) error {
				res.Seen++
				n := a.Note(r)
				if !filter.Match(&n) {
					return nil
				}
				res.Matched++
				full, err := s.write(r, &n)
				if err == nil && full {
					err = errFull
				}
				return err
			})
			if errors.Is(err, errFull) {
				err = nil
			}
			var notes []string
			if skipped > 0 {
				notes = append(notes, fmt.Sprintf("%d packets left out: neither Ethernet nor raw IP", skipped))
				fmt.Fprintln(cmd.ErrOrStderr(), "note:", notes[0])
			}
			if err != nil {
				err = usagef("capture read: %q: %w; give a capture as pcapng", args[0], err)
			}
			return errors.Join(err, s.close(cmd.ErrOrStderr(), res, a, notes))
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&f.topology, "topology", "", "the fabric, which names the paths: a `spec` such as fat-tree:k=4, or a file")
	return cmd
}

// plainError is why a file cannot be opened, in words.
func plainError(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("there is no such file")
	case errors.Is(err, fs.ErrPermission):
		return errors.New("permission denied")
	}
	if p := new(fs.PathError); errors.As(err, &p) {
		return p.Err
	}
	return err
}
