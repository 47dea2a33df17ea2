package kernel

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// Whatever the variable says, nothing else is taken for the list of names.
func TestTakeNames_refuses(t *testing.T) {
	t.Cleanup(DropNames)
	fd, err := unix.Eventfd(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{"", "x", "-1", "987654", fmt.Sprint(fd)} {
		t.Setenv(namesVariable, value)
		TakeNames()
		if _, set := os.LookupEnv(namesVariable); set || names.iter != nil {
			t.Errorf("%q: left in the environment %t, taken %t", value, set, names.iter != nil)
		}
	}
}
