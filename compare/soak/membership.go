package soak

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/release"
)

// refuse asks for membership changes that are refused, most of them only when they are applied, and updates the URLs of
// a member.
func (h *History) refuse(i int) {
	own, id, other := h.c.PeerURL(i), h.memberID(i), h.c.PeerURL((i+1)%h.c.Size())
	cli := h.c.Client(h.c.Leader())
	for _, ask := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"add a URL twice", func(ctx context.Context) error {
			_,
				err := cli.MemberAdd(ctx, []string{own})
			return err
		}},
		{"remove an unknown ID", func(ctx context.Context) error {
			_,
				err := cli.MemberRemove(ctx, 0x7e57ab1e)
			return err
		}},
		{"promote a voter", func(ctx context.Context) error { _, err := cli.MemberPromote(ctx, id); return err }},
		{"update its URLs", func(ctx context.Context) error {
			_, err := cli.MemberUpdate(ctx, id, []string{own, "http://127.63.9.7:1"})
			return err
		}},
		{"take the URL of another", func(ctx context.Context) error {
			_,
				err := cli.MemberUpdate(ctx, id, []string{own, other})
			return err
		}},
		{"update them back", func(ctx context.Context) error {
			_,
				err := cli.MemberUpdate(ctx, id, []string{own})
			return err
		}},
	} {
		ctx, cancel := h.context()
		h.say("%s: %v", ask.what, ask.do(ctx))
		cancel()
	}
	h.settle()
}

func (h *History) addLearner() {
	if len(h.learners) > 0 || h.members() >= 5 || !h.c.Running(0) || h.gone[0] {
		h.restart(h.any())
		return
	}
	h.addressBack()
	i := h.c.Add(true)
	h.learners[i], h.hadLearner = true, true
	h.say("%s is added as learner", h.c.Name(i))
	h.settle()
}

func (h *History) promote() {
	for i := range h.learners {
		id := h.memberID(i)
		h.c.WaitUntil("the learner is ready", func(ctx context.Context) error {
			_, err := h.c.Client(h.c.Leader()).MemberPromote(ctx, id)
			return err
		})
		h.say("%s is promoted", h.c.Name(i))
		delete(h.learners, i)
		return
	}
}

// remove removes a member other than the first, which stays because clustertest changes the membership through it.
func (h *History) remove(i int) {
	if i == 0 || h.members() < 3 || len(h.voters()) < h.members() {
		h.restart(h.any())
		return
	}
	if h.rng.IntN(2) == 0 {
		h.c.Stop(i)
		h.settle()
		h.burst(4)
	}
	h.c.Remove(i)
	h.gone[i] = true
	h.say("%s is removed", h.c.Name(i))
	if h.c.Running(i) {
		time.Sleep(300 * time.Millisecond)
		h.c.Stop(i)
	}
	h.settle()
}

// dismiss removes the learner.
func (h *History) dismiss() {
	for i := range h.learners {
		h.c.Remove(i)
		delete(h.learners, i)
		h.gone[i] = true
		h.say("learner %s is removed", h.c.Name(i))
		if h.c.Running(i) {
			time.Sleep(300 * time.Millisecond)
			h.c.Stop(i)
		}
		h.settle()
		return
	}
	h.restart(h.any())
}

// replace gives a member other than the first up and adds it again, under its name and with an empty data dir. Its old
// one is kept.
func (h *History) replace(i int) {
	if i == 0 || h.members() < 3 || len(h.voters()) < h.members() {
		h.restart(h.any())
		return
	}
	h.addressBack()
	h.c.Stop(i)
	h.settle()
	h.burst(4)
	h.keepOld(i)
	h.c.Remove(i)
	h.c.Wipe(i)
	h.c.AddAgain(i)
	h.say("%s is replaced", h.c.Name(i))
	h.settle()
}

// keepOld takes the data dir of a stopped member, which gets a new identity, as a further source.
func (h *History) keepOld(i int) {
	dst := filepath.Join(h.dir, "old-"+h.c.Name(i))
	if err := errors.Join(os.RemoveAll(dst), evidencetest.CopyTo(h.c.DataDir(i), dst)); err != nil {
		h.t.Fatal(err)
	}
	h.extras = slices.DeleteFunc(h.extras, func(s Source) bool { return s.Path == dst })
	h.extras = append(h.extras, Source{Name: h.c.Name(i) + "-old", Path: dst, Aged: true})
	delete(h.older, h.c.Name(i)) // of another identity
	delete(h.live, h.c.Name(i))
}

// force is what is done after the majority was lost: the first member forces a new cluster, and the others join it
// under their names and with empty data dirs. Their old ones are kept.
func (h *History) force() {
	all := h.voters()
	if len(all) < h.members() || len(all) < 2 || len(h.learners) > 0 ||
		h.hadLearner && h.s.has(release.ForcedLearnerFails) {
		h.restart(h.any())
		return
	}
	h.addressBack()
	for _, i := range all[1:] {
		h.c.WaitApplied()
		h.c.Stop(i)
	}
	h.c.Stop(0)
	for _, i := range all[1:] {
		h.keepOld(i)
		h.c.Wipe(i)
	}
	h.c.StartAlone("--force-new-cluster")
	h.say("%s forces a new cluster", h.c.Name(0))
	h.burst(4)
	h.restart(0)
	h.rejoin(all[1:])
}

// rejoin adds members with empty data dirs to the first one, which is alone.
func (h *History) rejoin(others []int) {
	for _, i := range others {
		h.c.AddAgain(i)
		h.burst(2)
	}
	h.kube = kube{}
	h.settle()
}

// readdress gives a member a second peer URL, at which nothing listens, or takes it away again.
func (h *History) readdress(i int) {
	switch {
	case len(h.voters()) < h.members():
	case h.moved > 0:
		h.addressBack()
	default:
		h.moved = i + 1
		h.update(i, h.c.PeerURL(i), "http://127.0.0.1:9")
	}
}

// addressBack takes the second peer URL away again. Early releases of 3.4 refuse to join a cluster where one is.
func (h *History) addressBack() {
	if i := h.moved - 1; i >= 0 && !h.gone[i] {
		h.update(i, h.c.PeerURL(i))
	}
	h.moved = 0
}

func (h *History) update(i int, urls ...string) {
	ctx, cancel := h.context()
	defer cancel()
	_, err := h.c.Client(h.c.Leader()).MemberUpdate(ctx, h.memberID(i), urls)
	h.say("%s is given the peer URLs %v: %v", h.c.Name(i), urls, err)
}

func (h *History) memberID(i int) uint64 {
	ctx, cancel := context.WithTimeout(context.Background(), clustertest.Patience)
	defer cancel()
	l, err := h.c.Client(h.c.Leader()).MemberList(ctx)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, m := range l.Members {
		if len(m.PeerURLs) > 0 && m.PeerURLs[0] == h.c.PeerURL(i) {
			return m.ID
		}
	}
	h.t.Fatalf("%s is not in the member list", h.c.Name(i))
	return 0
}
