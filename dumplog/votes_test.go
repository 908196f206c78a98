package dumplog

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestBallots: the first vote of each candidate counts, with the last entry before it, and a commit index that falls is
// noticed inside of a segment and from one to the next.
func TestBallots(t *testing.T) {
	at := func(seg string, off int64) Pos { return Pos{Segment: seg, Offset: off} }
	var one, two, empty ballots
	for i, h := range []HardState{{Term: 1, Commit: 3}, {Term: 2, Vote: 7, Commit: 3}, {Term: 2, Vote: 7, Commit: 9},
		{Term: 3, Commit: 9}, {Term: 3, Vote: 8, Commit: 5}} {
		one.add(h, at("a", int64(i)), uint64(i)) // an entry after each
	}
	for i, h := range []HardState{{Term: 3, Vote: 8, Commit: 4}, {Term: 3, Vote: 7, Commit: 4},
		{Term: 4, Vote: 7, Commit: 6}} {
		two.add(h, at("b", int64(i)), uint64(i/2*8)) // none before the third
	}
	var all ballots
	for _, b := range []*ballots{&empty, &one, &empty, &two} {
		all.join(b, 5)
	}
	wantVotes := []Vote{{at("a", 1), 2, 7, 1}, {at("a", 4), 3, 8, 4}, {at("b", 1), 3, 7, 5}, {at("b", 2), 4, 7, 8}}
	if d := cmp.Diff(wantVotes, all.votes); d != "" {
		t.Errorf("votes (-want +have):\n%s", d)
	}
	wantFalls := []CommitFall{{at("a", 4), 9, 5}, {at("b", 0), 5, 4}}
	if d := cmp.Diff(wantFalls, all.falls); d != "" {
		t.Errorf("falls (-want +have):\n%s", d)
	}
	if d := cmp.Diff([]uint64{1, 2, 3, 4}, all.terms); d != "" {
		t.Errorf("terms (-want +have):\n%s", d)
	}
}

// TestFallsAreBounded: a hostile log cannot make the list grow without end.
func TestFallsAreBounded(t *testing.T) {
	var b ballots
	for i := range uint64(3 * maxCommitFalls) {
		b.add(HardState{Term: 1 + i%2, Commit: 1 - i%2}, Pos{}, 0)
	}
	if len(b.falls) != maxCommitFalls {
		t.Errorf("%d falls kept, want %d", len(b.falls), maxCommitFalls)
	}
}
