package encap

import "testing"

func TestEncapsulateECN_copies(t *testing.T) {
	for e := NotECT; e <= CE; e++ {
		if got := encapsulateECN(e); got != e {
			t.Errorf("EncapsulateECN(%v) = %v", e, got)
		}
	}
}

// The table of RFC 6040 Fig. 4, row by row as it is printed there.
func TestDecapsulateECN_RFC6040Figure4(t *testing.T) {
	const drop = ECN(255)
	outers := []ECN{NotECT, ECT0, ECT1, CE}
	for _, row := range []struct {
		inner ECN
		want  [4]ECN
	}{
		{NotECT, [4]ECN{NotECT, NotECT, NotECT, drop}},
		{ECT0, [4]ECN{ECT0, ECT0, ECT1, CE}},
		{ECT1, [4]ECN{ECT1, ECT1, ECT1, CE}},
		{CE, [4]ECN{CE, CE, CE, CE}},
	} {
		for i, outer := range outers {
			got, ok := decapsulateECN(row.inner, outer)
			if want := row.want[i]; ok != (want != drop) || ok && got != want {
				t.Errorf("DecapsulateECN(%v, %v) = %v, %v; want %v", row.inner, outer, got, ok, want)
			}
		}
	}
}

func TestECN_codepointsOfRFC3168(t *testing.T) {
	for e, want := range map[ECN]string{0b00: "Not-ECT", 0b01: "ECT(1)", 0b10: "ECT(0)", 0b11: "CE"} {
		if e.String() != want {
			t.Errorf("codepoint %02b is %v, want %s", e, e, want)
		}
	}
}
