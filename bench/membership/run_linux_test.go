package membership

import (
	"os"
	"testing"
	"time"

	"weft/encap"
	"weft/internal/slowtest"
)

// Hosts find each other on members of etcd that are killed and cut: no connection is lost, and
// nothing of forged or expired peers is accepted.
func TestRun(t *testing.T) {
	slowtest.System(t)
	if err := CheckPrograms(); err != nil {
		t.Skip(err)
	}
	o := Options{Hosts: slowtest.Choose(8, 50), Kills: slowtest.Choose(3, 50), Quiet: slowtest.Choose(2*time.Second, 30*time.Second), Renew: slowtest.Choose(4*time.Second, 20*time.Second),
		TTL: slowtest.Choose(2*time.Second, 10*time.Second), Linger: slowtest.Choose(8*time.Second, 30*time.Second), Cipher: encap.UDPAESGCM, Seed: 1}
	if testing.Verbose() {
		o.Notes = os.Stderr
	}
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if why := r.Failed(); why != "" {
		t.Error(why, r.Errors)
	}
	if f := r.Foreign; f.Forged == 0 || f.Refused == 0 || r.Traffic.Exchanges == 0 {
		t.Errorf("nothing was tried: %+v, %+v", f, r.Traffic)
	}
	for _, u := range r.Foreign.Usurped {
		if u.Tried == 0 && slowtest.Long() || u.MovedBytes > 0 || u.Taken > 0 {
			t.Errorf("%+v", u)
		}
	}
	r.Print(os.Stderr)
}
