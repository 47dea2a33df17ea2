package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"weft/bench/papers"
	"weft/bench/papers/results"
)

// resultStore is the directory in which results are kept; nil: they are not.
type resultStore struct {
	dir      string
	commit   string
	modified bool
}

// newResultStore looks whether a directory can take what a run gives, so that a run that
// cannot be kept does not begin. None is none.
func newResultStore(dir string, quick bool) (*resultStore, error) {
	s, err := openResultStore(dir)
	switch {
	case s == nil || err != nil:
		return nil, err
	case quick:
		return nil, errQuickStore
	}
	return s, nil
}

var errQuickStore = usagef("--store with --quick: a quick run says nothing that is worth keeping")

// newVariantStore looks likewise whether it can take what mutants or decisions gave beside
// what is there.
func newVariantStore(dir string) (*resultStore, error) {
	s, err := openResultStore(dir)
	if s == nil || err != nil {
		return nil, err
	}
	if _, err := results.Read(os.DirFS(dir)); err != nil {
		return nil, usagef("--store=%s: %w; mend the file, or get it back from git", dir, err)
	}
	return s, nil
}

func openResultStore(dir string) (*resultStore, error) {
	if dir == "" {
		return nil, nil
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, usagef("--store=%s: must be a directory of results: bench/papers/results", dir)
	}
	probe, err := os.CreateTemp(dir, ".weft-store-*")
	if err != nil {
		return nil, cannotWrite("store", dir, err)
	}
	probe.Close()
	os.Remove(probe.Name())
	s := &resultStore{dir: dir}
	if info, ok := debug.ReadBuildInfo(); ok {
		v := versionOf(info)
		s.commit, s.modified = v.Revision, v.Modified
	}
	if s.commit == "" { // go run, and worktrees, leave it out
		s.commit, s.modified = commitOf(dir)
	}
	if s.commit == "" {
		return nil, usagef("--store=%s: nobody knows the commit: the directory of results must be in a git repository", dir)
	}
	return s, nil
}

// commitOf is the commit that a directory's repository has, and whether files of Go differ from it.
func commitOf(dir string) (commit string, modified bool) {
	head, err := exec.Command("git", "-C", dir, "rev-parse", "HEAD").Output()
	if err != nil {
		return "", false
	}
	changed, err := exec.Command("git", "-C", dir, "status", "--porcelain", "--", ":/*.go").Output()
	return strings.TrimSpace(string(head)), err != nil || len(changed) > 0
}

// head says where what this build gives is from.
func (s *resultStore) head() results.Head {
	return results.Head{Commit: s.commit, Modified: s.modified, Machine: cpuModel() + ": " + machine(), Date: time.Now().UTC().Format(time.DateOnly)}
}

// report keeps what a run gave.
func (s *resultStore) report(r *papers.Report) error {
	if s == nil {
		return nil
	}
	run, err := results.Of(r, s.head())
	if err != nil {
		return fmt.Errorf("--store: %w", err)
	}
	b, err := run.JSON()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.dir, run.Name()), b, 0o644)
}

// mutants keeps trials, in place of earlier ones of the same experiments.
func (s *resultStore) mutants(trials []papers.Trial) error {
	return keepVariants(s, results.MutantsFile, trials, results.Trials, func(r *results.Results) []results.Trial { return r.Mutants })
}

// decisions keeps findings likewise.
func (s *resultStore) decisions(found []papers.Finding) error {
	return keepVariants(s, results.DecisionsFile, found, results.Findings, func(r *results.Results) []results.Finding { return r.Decisions })
}

// keepVariants merges what variants gave into the file of what earlier ones did.
func keepVariants[T any, V results.Variant](s *resultStore, file string, list []T, headed func([]T, results.Head) ([]V, error), of func(*results.Results) []V) error {
	if s == nil || len(list) == 0 {
		return nil
	}
	old, err := results.Read(os.DirFS(s.dir))
	if err != nil {
		return fmt.Errorf("--store: %w", err)
	}
	news, err := headed(list, s.head())
	if err != nil {
		return fmt.Errorf("--store: %w", err)
	}
	all, err := results.Merge(of(old), news)
	if err != nil {
		return fmt.Errorf("--store: %w", err)
	}
	b, err := results.ListJSON(all)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.dir, file), b, 0o644)
}

// writeDocuments renews what documents of a repository say of stored results.
func writeDocuments(root string, all []papers.Experiment) error {
	stored, err := results.Read(os.DirFS(filepath.Join(root, "bench/papers/results")))
	if err != nil {
		return fmt.Errorf("--write=%s: %w", root, err)
	}
	var failed error
	for _, d := range results.Documents {
		failed = errors.Join(failed, writeDocument(root, d, stored, all))
	}
	return failed
}

func writeDocument(root string, d results.Document, stored *results.Results, all []papers.Experiment) error {
	path := filepath.Join(root, d.Path)
	old, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return usagef("--write=%s: %s is not there: name the root of the repository", root, d.Path)
	}
	if err != nil {
		return err
	}
	text, err := d.Fill(string(old), stored, all)
	if err != nil || text == string(old) {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644)
}
