package casetest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/protoadapt"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

// begun is the millisecond at which the processes of written clusters begin.
const begun = 763_000_000_000

// hands is a cluster whose data dirs are written entry by entry, so that they can hold what no server writes.
type hands struct {
	t           *testing.T
	of          []*clustertest.Hand
	ids         []uint64
	closed      map[int]bool
	listed      map[int]bool
	term, index uint64
	n, begin    uint64
	published   map[uint64]uint64 // by member
}

// newHands begins the members of "hands [restored] [base=N] ID...", with N revisions from before a restore.
func newHands(t *testing.T, root string, l Line) *hands {
	t.Helper()
	h := &hands{t: t, term: 1, begin: begun, closed: map[int]bool{}, listed: map[int]bool{},
		published: map[uint64]uint64{}}
	restored, base := false, 0
	for _, w := range l.Words(t) {
		switch {
		case w == "restored":
			restored = true
		case strings.HasPrefix(w, "base="):
			base = int(number(t, l, w[len("base="):], 10))
		default:
			h.ids = append(h.ids, number(t, l, w, 16))
		}
	}
	for i, id := range h.ids {
		m := clustertest.NewHand(t, root, fmt.Sprintf("node%d", i+1), id, 0xc1)
		for n := range base {
			m.Revision(fmt.Sprintf("/old/%02d", n%7), fmt.Sprint("old value ", n))
		}
		m.Found(restored, h.ids...)
		h.of = append(h.of, m)
	}
	h.index = uint64(len(h.ids))
	return h
}

func number(t *testing.T, l Line, s string, base int) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(s, base, 64)
	if err != nil {
		t.Fatalf("line %d: %v", l.No, err)
	}
	return n
}

// on takes the members out of the words of a line (node1 node3; all where none is named) and returns the other words.
func (h *hands) on(l Line) (pos []int, rest []string) {
	h.t.Helper()
	for _, w := range l.Words(h.t) {
		if strings.HasPrefix(w, "node") && len(w) == 5 {
			pos = append(pos, int(w[4]-'1'))
			continue
		}
		rest = append(rest, w)
	}
	if len(pos) == 0 {
		for i := range h.of {
			if !h.closed[i] {
				pos = append(pos, i)
			}
		}
	}
	return pos, rest
}

// entry writes the next entry into the logs of members.
func (h *hands) entry(pos []int, write func(m *clustertest.Hand, index uint64)) {
	h.index++
	for _, i := range pos {
		write(h.of[i], h.index)
	}
}

func (h *hands) request(id uint64) uint64 {
	h.n++
	return clustertest.RequestID(id, h.begin, 10+h.n)
}

// do carries out a line; false when the verb is not one for hands.
func (h *hands) do(l Line) bool {
	h.t.Helper()
	pos, w := h.on(l)
	num := func(i, base int) uint64 {
		if i >= len(w) {
			h.t.Fatalf("line %d: %s lacks a number", l.No, l.Verb)
		}
		return number(h.t, l, w[i], base)
	}
	switch l.Verb {
	case "elect":
		h.elect(pos)
	case "puts":
		for range num(0, 10) {
			id := h.request(h.ids[0])
			h.entry(pos, func(m *clustertest.Hand, index uint64) {
				m.Put(h.term, index, id, fmt.Sprintf("/k/%02d", h.n%9), fmt.Sprint("value ", h.n), true)
			})
		}
	case "proposed": // proposed ID: a put that this member proposed
		id := h.request(num(0, 16))
		h.entry(pos, func(m *clustertest.Hand, index uint64) { m.Put(h.term, index, id, "/k/proposed", "v", true) })
	case "unapplied": // a put whose effect is on no member named
		id := h.request(h.ids[0])
		h.entry(allOf(h), func(m *clustertest.Hand, index uint64) {
			m.Put(h.term, index, id, "/k/unapplied", "v",
				!slices.ContainsFunc(pos, func(i int) bool { return h.of[i] == m }))
		})
	case "request":
		r := &etcdserverpb.InternalRaftRequest{}
		if err := prototext.Unmarshal([]byte(w[0]), protoadapt.MessageV2Of(r)); err != nil {
			h.t.Fatalf("line %d: %v", l.No, err)
		}
		r.Header = &etcdserverpb.RequestHeader{ID: h.request(h.ids[0])}
		h.entry(pos, func(m *clustertest.Hand, index uint64) { m.Request(h.term, index, r) })
	case "huge": // huge MIB: a put of so many MiB
		id, value := h.request(h.ids[0]), strings.Repeat("x", int(num(0, 10))<<20)
		h.entry(pos, func(m *clustertest.Hand, index uint64) { m.Put(h.term, index, id, "/huge", value, true) })
	case "empty":
		h.entry(pos, func(m *clustertest.Hand, index uint64) { m.Request(h.term, index, nil) })
	case "commit":
		for _, i := range pos {
			h.of[i].State(h.term, h.ids[0], h.index)
		}
	case "state": // state NODE TERM VOTE COMMIT
		for _, i := range pos {
			h.of[i].State(num(0, 10), num(1, 16), num(2, 10))
		}
	case "goto": // goto INDEX TERM: the next entry follows this one
		h.index, h.term = num(0, 10), num(1, 10)
	case "process": // the processes that propose from here on began so many milliseconds later
		h.begin += num(0, 10)
	default:
		return h.dirs(l, pos) || h.members(l, pos, w, num)
	}
	return true
}

// dirs are the lines that give members another data dir.
func (h *hands) dirs(l Line, pos []int) bool {
	h.t.Helper()
	switch l.Verb {
	case "wiped": // wiped NODE: its data dir is that of a member that was bootstrapped and did nothing else
		for _, i := range pos {
			h.of[i] = clustertest.NewHand(h.t, h.t.TempDir(), fmt.Sprintf("node%d", i+1), h.ids[i], 0xc1)
			h.of[i].Found(false, h.ids...)
			h.close(i, uint64(len(h.ids)), 1)
		}
	case "restored-alone": // restored-alone NODE: its data dir is what a restore of this member alone writes
		for _, i := range pos {
			h.of[i] = clustertest.NewHand(h.t, h.t.TempDir(), fmt.Sprintf("node%d", i+1), h.ids[i], 0xc1)
			for n := range 12 {
				h.of[i].Revision(fmt.Sprintf("/old/%02d", n), "old")
			}
			h.of[i].Found(true, h.ids...)
			h.close(i, uint64(len(h.ids)), 1)
		}
	case "begun": // begun NODE: its log is that of a member that was bootstrapped, its database is its own
		for _, i := range pos {
			h.close(i, h.index, h.term)
			fresh := clustertest.NewHand(h.t, h.t.TempDir(), "fresh", h.ids[i], 0xc1)
			fresh.Found(false, h.ids...)
			dir := fresh.Close(uint64(len(h.ids)), 1)
			for _, err := range []error{os.RemoveAll(filepath.Join(h.of[i].Dir, "member", "wal")),
				os.Rename(filepath.Join(dir, "member", "wal"), filepath.Join(h.of[i].Dir, "member", "wal"))} {
				if err != nil {
					h.t.Fatal(err)
				}
			}
		}
	default:
		return false
	}
	return true
}

// members are the lines about the member list, snapshots and the end of a data dir.
func (h *hands) members(l Line, pos []int, w []string, num func(i, base int) uint64) bool {
	h.t.Helper()
	switch l.Verb {
	case "conf": // conf add|learner|promote|remove ID [forced]
		cc := h.change(l, w[0], num(1, 16), len(w) > 2 && w[2] == "forced")
		h.entry(pos, func(m *clustertest.Hand, index uint64) { m.Conf(h.term, index, cc) })
	case "publish":
		h.publish(pos, num(0, 16))
	case "snapshot": // snapshot [VOTER...]
		for _, i := range pos {
			h.of[i].Snapshot(h.term, h.index, h.voters(l, w)...)
		}
	case "listed": // listed ID[:learner][:unstarted]...
		for _, i := range pos {
			h.listed[i] = true
			for _, word := range w {
				id, more, _ := strings.Cut(word, ":")
				h.of[i].Member(number(h.t, l, id, 16), strings.Contains(more, "learner"),
					!strings.Contains(more, "unstarted"))
			}
		}
	case "v2": // v2 NODE...: their v2 store lacks its first member
		for _, i := range pos {
			h.of[i].V2.Members = h.of[i].V2.Members[1:]
		}
	case "v2keys": // v2keys KEY...: the v2 store holds keys of clients
		for _, i := range pos {
			h.of[i].V2.Keys = w
		}
	case "v2version": // v2version VERSION: the v2 store holds this cluster version
		for _, i := range pos {
			h.of[i].V2.Version = w[0]
		}
	case "removed":
		for _, i := range pos {
			for n := range w {
				h.of[i].Removed(num(n, 16))
			}
		}
	case "row": // row BUCKET KEY VALUE
		for _, i := range pos {
			h.of[i].Row(w[0], string(literal(h.t, l, w[1])), string(literal(h.t, l, w[2])))
		}
	case "close": // close NODE... [INDEX TERM]
		index, term := h.index, h.term
		if len(w) == 2 {
			index, term = num(0, 10), num(1, 10)
		}
		for _, i := range pos {
			h.close(i, index, term)
		}
	default:
		return false
	}
	return true
}

func (h *hands) voters(l Line, w []string) []uint64 {
	h.t.Helper()
	if len(w) == 0 {
		return h.ids
	}
	var out []uint64
	for _, s := range w {
		out = append(out, number(h.t, l, s, 16))
	}
	return out
}

func (h *hands) change(l Line, kind string, id uint64, forced bool) (cc raftpb.ConfChange) {
	h.t.Helper()
	request := h.request(h.ids[0])
	if forced {
		request = 0
	}
	switch kind {
	case "add":
		return clustertest.AddVoter(id, request)
	case "learner":
		return clustertest.AddLearner(id, request)
	case "promote":
		return clustertest.Promote(id, request)
	case "move": // to the peer URL http://127.0.0.1:9
		return clustertest.MoveMember(id, request)
	case "remove":
		return clustertest.RemoveMember(id, request)
	}
	h.t.Fatalf("line %d: no change %q", l.No, kind)
	return cc
}

// elect begins a term with the first member as leader; all publish themselves.
func (h *hands) elect(pos []int) {
	h.term++
	for _, i := range pos {
		h.of[i].State(h.term, h.ids[0], h.index)
	}
	h.entry(pos, func(m *clustertest.Hand, index uint64) { m.Request(h.term, index, nil) })
	for _, id := range h.ids {
		h.publish(pos, id)
	}
}

// publish writes the publish entry of a member, each time with another request ID.
func (h *hands) publish(pos []int, id uint64) {
	h.published[id]++
	request := clustertest.RequestID(id, h.begin, h.published[id])
	h.entry(pos, func(m *clustertest.Hand, index uint64) { m.Publish(h.term, index, id, request) })
}

func allOf(h *hands) (out []int) {
	for i := range h.of {
		if !h.closed[i] {
			out = append(out, i)
		}
	}
	return out
}

func (h *hands) close(i int, index, term uint64) {
	h.t.Helper()
	h.closed[i] = true
	if !h.listed[i] {
		for _, id := range h.ids {
			h.of[i].Member(id, false, true)
		}
	}
	h.of[i].Close(index, term)
}

// finish closes what is still open; all know the last entry to be committed and have applied it.
func (h *hands) finish() {
	h.t.Helper()
	for i, m := range h.of {
		if !h.closed[i] {
			m.State(h.term, h.ids[0], h.index)
			h.close(i, h.index, h.term)
		}
	}
}
