package service

import (
	"strings"
	"testing"
)

func TestLookUp_errorsSayWhatIsMissing(t *testing.T) {
	for name, want := range map[string]string{"nosuchuser": `no user "nosuchuser"`, "4000000001": `no user "4000000001"`} {
		_, err := LookUp(name)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "create it") || strings.Contains(err.Error(), "strconv") {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	if a, err := LookUp("0"); err != nil || a.UID != 0 {
		t.Errorf("0: %+v, %v", a, err)
	}
}
