// Package slowtest says which slow tests run. The variable WEFT_TESTS has three levels:
//
//	(unset)  what go test ./... runs: no test waits long. It takes some 11 CPU-minutes in all
//	all      and all tests of whole systems; this is what CI runs
//	long     and some of them as long as a release needs them, and those of Release
//
// A test is slow if it needs a whole system in real time for more than some three seconds.
// It calls System first. All else is in every run. The flag -short is something else: it
// makes tests smaller where the race detector would take too long.
//
// CI runs most tests of whole systems once, with the race detector. Those that call
// Unraced it runs once without. WEFT_TESTS=unraced is how it asks for the latter alone.
// CI leaves out what calls Release: grep finds all of it, and each names the test that CI
// runs in its place.
package slowtest

import (
	"os"
	"testing"
)

const variable = "WEFT_TESTS"

// System skips a slow test unless WEFT_TESTS is all or long.
func System(t testing.TB) {
	t.Helper()
	if v := os.Getenv(variable); v != "all" && v != "long" {
		t.Skipf("a slow test of a whole system: %s=all runs it", variable)
	}
}

// Unraced skips a slow test that is not for the race detector, which makes it too slow or
// spoils what it asserts: with -short, and unless WEFT_TESTS is all, long or unraced.
func Unraced(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes too long, or cannot hold, with the race detector: left out with -short")
	}
	if os.Getenv(variable) != "unraced" {
		System(t)
	}
}

// Release skips a test, or a part of one, that a release needs and CI does not: unless
// WEFT_TESTS is long. CI runs the test covered, Test... of the same package or
// dir.Test..., which has the same mechanism in less time; why says what this one adds.
func Release(t testing.TB, covered, why string) {
	t.Helper()
	if !Long() {
		t.Skipf("for releases: %s=long runs it; %s has it in less time, without this: %s", variable, covered, why)
	}
}

// Small reports whether tests of many rounds are to do with few: with -short, and where
// WEFT_TESTS does not ask for more.
func Small() bool { return testing.Short() || os.Getenv(variable) == "" }

// Long reports whether tests are to run as long as a release needs them: WEFT_TESTS=long.
func Long() bool { return os.Getenv(variable) == "long" }

// Choose returns the first value in an ordinary run, the other one in a long run.
func Choose[T any](ordinary, long T) T {
	if Long() {
		return long
	}
	return ordinary
}
