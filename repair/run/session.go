package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/internal/disk"
	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// Options say how a plan is rehearsed or applied.
type Options struct {
	// Version is the tool's version, for the outcome.
	Version string
	// Specs replace the plan's sources, for copies that are elsewhere now; their digests must still match.
	Specs []evidence.Spec
	// VerifyWith is a file of public SSH keys, one of which must have signed the plan; "" asks for no signature.
	VerifyWith string
	// Work is the scratch folder, by default next to the plan; Keep leaves it there at the end.
	Work string
	Keep bool
	// Again gives up an interrupted run and begins a new one.
	Again bool
	// EtcdBinary is the path of the operator's etcd server, "" for the bundled ones.
	EtcdBinary string
	Isolation  node.Isolation
	// Rehearse is the procedure to rehearse, "" for the recommended one.
	Rehearse plan.Mode
	// AllowUpgrade lets a newer release than that of the sources write the new data dirs.
	AllowUpgrade bool
	// Progress, if set, is called with a description of each part of the work when it begins.
	Progress func(string)
	// room replaces the file system's answer in tests.
	room func(string) (int64, bool)
	// observe is called for each line of the journal before and after it is synced, so that tests can end the process
	// at any point.
	observe func(r Record, flushed bool)
	// limits shorten the waits in tests.
	limits limits
}

func (o *Options) fill() {
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	if o.room == nil {
		o.room = disk.Room
	}
	if o.observe == nil {
		o.observe = func(Record, bool) {}
	}
	if o.limits == (limits{}) {
		o.limits = defaultLimits()
	}
}

// otherPlace is the hint if there is too little room.
const otherPlace = "free some, or name another place with --work or -o"

// session is one run of a plan: lock, journal, outcome.
type session struct {
	plan   *plan.Plan
	file   string
	o      Options
	j      *journal
	out    *Outcome
	unlock func()
	begun  time.Time
}

// open loads and locks the plan. Only the lock file is written before the caller has made its checks.
func open(file string, o Options) (*session, error) {
	o.fill()
	p, signer, err := load(file, o.VerifyWith)
	if err != nil {
		return nil, err
	}
	unlock, err := lock(file + ".lock")
	if err != nil {
		return nil, err
	}
	s := &session{plan: p, file: file, o: o, unlock: unlock, begun: time.Now()}
	s.out = &Outcome{SchemaVersion: plan.SchemaVersion, Tool: p.Tool, Plan: p.Digest, Steps: []StepResult{},
		Proofs: []Proof{}}
	s.out.Tool.Version = o.Version
	if signer != "" {
		s.out.Notes = append(s.out.Notes, "the plan is signed with the key "+signer)
	}
	return s, nil
}

// load reads a plan, with keys only one that is signed with one of them, and returns whose signature it is.
func load(file, keys string) (p *plan.Plan, signer string, err error) {
	if keys != "" {
		return plan.LoadSigned(file, keys)
	}
	p, err = plan.Load(file)
	return p, "", err
}

func (s *session) close() {
	if s.j != nil {
		_ = s.j.close() // every line was synced
	}
	s.unlock()
}

// state is what the session knows of a run; the journal must be open, except for live repairs.
func (s *session) state() *runState {
	return &runState{plan: s.plan, j: s.j, out: s.out, say: s.o.Progress}
}

// journal opens the journal for a mode.
func (s *session) journal(mode plan.Mode) error {
	j, err := openJournal(s.file, s.plan.Digest, mode, s.o.Again, s.o.observe)
	if err != nil {
		return err
	}
	s.j, s.out.Mode, s.out.Resumed = j, mode, j.resumed()
	return nil
}

// sources opens the plan's sources and compares them with the digests that the plan is bound to.
func (s *session) sources(ctx context.Context) (*evidence.Set, error) {
	set, err := evidence.Open(ctx, s.specs(), evidence.Options{Hash: true, Progress: s.o.Progress})
	if err != nil {
		return nil, refusal.New("give the places of the copies again: etcd-medic repair rehearse PLAN [NAME=]PATH...",
			"the sources of the plan cannot be read: %v", err)
	}
	if err := s.sameSources(set); err != nil {
		return nil, errors.Join(err, set.Close())
	}
	return set, nil
}

func (s *session) specs() []evidence.Spec {
	if len(s.o.Specs) > 0 {
		return s.o.Specs
	}
	return s.plan.Specs()
}

// outside refuses new paths inside a source.
func (s *session) outside(paths ...string) error {
	for _, p := range paths {
		if err := datadir.Outside(p, s.specs()...); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) sameSources(set *evidence.Set) error {
	const hint = "plan again: a plan is only good for the bytes it was made from"
	for _, f := range set.Failed {
		return refusal.New("make it readable", "source %s cannot be read: %v", f.Spec.Where, f.Err)
	}
	found := map[string]string{}
	for _, m := range set.Members {
		found[m.Label()] = m.Source.Manifest.Digest()
	}
	for _, want := range s.plan.Sources {
		got, ok := found[want.Name]
		switch {
		case !ok:
			return refusal.New(hint, "source %s of the plan is missing", want.Name)
		case got != want.SHA256:
			return refusal.New(hint, "source %s changed since the plan was made: its digest was %s, it is %s",
				want.Name,
				first(want.SHA256), first(got))
		}
	}
	return nil
}

// emptied removes the scratch folder of this run, unless it is kept.
func (s *session) emptied(work string) func() error {
	return func() error {
		if s.o.Keep {
			return nil
		}
		return os.RemoveAll(work)
	}
}

// finish closes the run: it writes the result to the journal and removes scratch.
func (s *session) finish(err error, clean func() error) (*Outcome, error) {
	s.out.Seconds = round(time.Since(s.begun).Seconds())
	if err != nil {
		if s.j == nil {
			return nil, err
		}
		return s.out, err
	}
	s.out.Reached = s.out.provenWell()
	if !s.out.Reached {
		return s.out, &UnfinishedError{Step: "proof", Journal: s.j.path, Err: errors.New("a proof is violated"),
			Hint: "do not put the result into service; start again with --again"}
	}
	if s.out.Mode != plan.Live {
		s.out.Notes = append(s.out.Notes, givenUp(s.plan)...)
	}
	if err := s.j.write(Record{State: StateEnd}); err != nil {
		return s.out, err
	}
	return s.out, clean()
}

func (s *session) knownPeers() []string {
	var out []string
	for i := range s.plan.Members {
		out = append(out, s.plan.Members[i].PeerURLs...)
	}
	return out
}

// freshWork refuses a scratch folder that this program did not make.
func (s *session) freshWork(work string) error {
	entries, err := os.ReadDir(work)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(work, markFile)); err != nil {
		return refusal.New("name another folder with --work", "%s is not empty, and not of an earlier run", work)
	}
	return nil
}

func (s *session) bySource(label string) *plan.Member {
	for i := range s.plan.Members {
		if m := &s.plan.Members[i]; m.Source == label {
			return m
		}
	}
	return nil
}

// first is enough of a digest to distinguish two.
func first(digest string) string { return fmt.Sprintf("%.12s", digest) }
