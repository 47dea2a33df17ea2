package resequencer

import (
	"testing"

	"weft/flowcell"
)

var juggler = Config{Discipline: Juggler, Merge: 20 * us, Hold: 500 * us, MinHold: 500 * us}

func TestJuggler_buildUpLearnsWhereTheSequenceStarts(t *testing.T) {
	script(t, juggler,
		push(0, data(5), ""),
		push(5*us, data(4), ""), // earlier still
		push(6*us, data(7), ""),
		expire(20*us-1, ""),
		expire(20*us, "ba"),
		push(30*us, data(6), "dc"))
}

func TestJuggler_synNeedsNoBuildUp(t *testing.T) {
	script(t, juggler,
		push(0, with(at(99, 0, data(0)), flowcell.FlagSYN), "a"),
		push(1*us, data(2), ""),
		push(2*us, data(1), "cb"))
}

func TestJuggler_inOrderWaitsToBeMerged(t *testing.T) {
	_, s := script(t, juggler,
		push(0, data(1), ""),
		push(15*us, data(2), ""),
		expire(20*us, "ab"), // inseq_timeout counts from the first
		push(21*us, data(3), ""),
		push(22*us, with(data(4), flowcell.FlagPSH), "cd"), // the sender asks
		push(23*us, at(500, 40000, data(0)), ""),
		push(24*us, at(40500, 30000, data(0)), "ef"), // enough
		push(25*us, at(70500, 0, with(data(0), flowcell.FlagFIN)), "g"))
	if s.InOrder != 7 {
		t.Errorf("%+v", s)
	}
}

func TestJuggler_lossRecoveryHoldsNothing(t *testing.T) {
	_, s := script(t, juggler,
		push(0, with(data(1), flowcell.FlagPSH), "a"),
		push(10*us, data(3), ""),
		push(20*us, data(5), ""),
		expire(510*us, "bc"), // ofo_timeout: all goes
		push(520*us, data(8), "d"),
		push(530*us, data(7), "e"),
		push(540*us, data(9), "f"),
		push(600*us, data(2), "g"), // filled: active merging again
		push(610*us, data(11), ""),
		push(620*us, data(10), "ih"))
	if s.TimedOut != 2 || s.Loss != 1 || s.InOrder != 2 || s.Filled != 2 {
		t.Errorf("%+v", s)
	}
}
