package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"weft/bench/papers"
	"weft/bench/papers/parts"
)

// shard is the flag --shard: this machine's share.
type shard papers.Shard

func (s *shard) String() string {
	if s.N == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", s.I, s.N)
}

func (s *shard) Type() string { return "i/n" }

// maxShards is more than there are seeds of experiments.
const maxShards = 100_000

func (s *shard) Set(text string) error {
	i, n, ok := strings.Cut(text, "/")
	if ok {
		var err1, err2 error
		s.I, err1 = strconv.Atoi(i)
		s.N, err2 = strconv.Atoi(n)
		ok = err1 == nil && err2 == nil && s.I >= 1 && s.I <= s.N && s.N <= maxShards
	}
	if !ok {
		return errors.New("must be i/n with i from 1 to n: 3/8 is the third of eight shares")
	}
	return nil
}

// checkShard finds flags that a share has no use for.
func (o *simOptions) checkShard() error {
	switch {
	case o.shard.N == 0:
		return nil
	case o.cache == "":
		return usagef("--shard=%s without --cache: name a directory for what this share gives", &o.shard)
	case o.json || o.output != "" || o.store != "":
		return usagef("--shard=%s prints no reports: give --json, --report and --store to weft sim merge", &o.shard)
	}
	return nil
}

// runShard runs a share of a task, and says where it is.
func (o *simOptions) runShard(ctx context.Context, notes io.Writer, t *simTask) error {
	plan := parts.PlanOf(t.cache.build, t.experiments, t.names, t.with, o.Options)
	text, err := plan.Encode()
	if err != nil {
		return err
	}
	if err := t.cache.write(plan.File(), text); err != nil {
		return err
	}
	b := t.batch
	b.Shard = papers.Shard(o.shard)
	var failed error
	err = o.pool(ctx, notes, b, func(_ *progress, _ int, _ *papers.Report, err error) { failed = errors.Join(failed, err) })
	if failed = errors.Join(failed, err); failed == nil {
		fmt.Fprintf(notes, "share %s is in %s: weft sim merge %s prints the reports when all are\n", &o.shard, o.cache, o.cache)
	}
	return failed
}
