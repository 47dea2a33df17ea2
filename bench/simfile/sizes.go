package simfile

import (
	"fmt"
	"path/filepath"
	"strings"

	"weft/bench/sim/workload"
	"weft/internal/config"
)

func (f *File) readSizes(dir string) error {
	s, key := &f.Traffic.Sizes, "traffic.sizes"
	given := 0
	for _, there := range []bool{s.CDF != "", s.File != "", s.Fixed != 0} {
		if there {
			given++
		}
	}
	switch {
	case f.Traffic.Matrix == list && given > 0:
		return f.wrong(key, "flows of matrix list have sizes of their own; remove it")
	case f.Traffic.Matrix == list:
		return nil
	case given != 1:
		return f.wrong(key, "%d of cdf, file and fixed_bytes are given; write one, such as {cdf: websearch_dctcp}", given)
	case !(s.Scale > 0 && s.Scale <= 1000):
		return f.wrong(key+".scale", "%g; write a number above 0, at most 1000", s.Scale)
	case s.Fixed < 0 || s.Fixed > maxFlow:
		return f.wrong(key+".fixed_bytes", "%d; write from 1 to %d", s.Fixed, int64(maxFlow))
	case s.Truncate < 0 || s.Truncate > maxFlow:
		return f.wrong(key+".truncate_bytes", "%d; write from 1 to %d, or leave it out", s.Truncate, int64(maxFlow))
	}
	var cdf *workload.CDF
	var err error
	switch {
	case s.Fixed != 0:
		cdf, f.sizesName = workload.Fixed(int64(s.Fixed)), fmt.Sprintf("fixed(%d)", s.Fixed)
	case s.CDF != "":
		if cdf, err = workload.LoadCDF(s.CDF); err != nil {
			return f.wrong(key+".cdf", "%s", strings.TrimPrefix(err.Error(), "workload: "))
		}
		f.sizesName = s.CDF
	default:
		text, err := config.ReadInput(beside(dir, s.File), maxCDF)
		if err == nil {
			cdf, err = workload.ParseCDF(text)
		}
		if err != nil {
			return f.wrong(key+".file", "%w", config.InFile(beside(dir, s.File), text, err))
		}
		f.sizesName = filepath.Base(s.File)
	}
	if f.Traffic.Matrix == incast && s.Fixed == 0 {
		return f.wrong(key, "jobs of matrix incast have one size; write fixed_bytes")
	}
	if s.Truncate > 0 {
		cdf = cdf.Truncate(int64(s.Truncate))
		f.sizesName += fmt.Sprintf(" up to %d", s.Truncate)
	}
	if s.Scale != 1 {
		cdf = cdf.Scale(s.Scale)
		f.sizesName += fmt.Sprintf(" times %g", s.Scale)
	}
	if !(cdf.Mean() > 0 && cdf.Mean() <= maxFlow) {
		return f.wrong(key, "the mean size is %g bytes; write sizes above 0, of at most %d", cdf.Mean(), int64(maxFlow))
	}
	f.plan.sizes = cdf
	return nil
}
