package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render"
	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/repair/lab"
	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/repair/run"
)

type labOptions struct {
	io        *Streams
	dir       string
	binary    string
	isolation string
	story     string
	watch     bool
}

const labLong = `Start a real etcd cluster of three members with auth enabled, break it, and go through all steps: what
every status says, what diagnose proves, a plan, its rehearsal on copies, its application to the running cluster, the
proof.

The stories:
%s

With --watch the members are watched as by etcd-medic watch: it reports the divergence, collect copies the members
while they run, and after the repair the divergence is over.

Everything runs in a sandbox without network access and ends with the command; only a scratch folder is written. The
servers are the bundled ones; --etcd-binary uses another one, of 3.5 or later.

Exit codes: 0 the repair reached its goal, 1 could not do its job, 2 wrong usage, 5 refused: no isolation for the
sandbox, 6 the repair did not reach its goal.`

const labExample = `  etcd-medic lab
  etcd-medic lab --story wiped
  etcd-medic lab --story auth --watch
  etcd-medic lab --dir lab --etcd-binary /usr/local/bin/etcd`

func newLabCmd(s *Streams, run func(context.Context, *labOptions) error) *cobra.Command {
	o := &labOptions{io: s}
	cmd := &cobra.Command{
		Use:     "lab",
		Short:   "break a real cluster on purpose, diagnose it and repair it while it runs",
		Long:    fmt.Sprintf(labLong, strings.Join(storyLines(), "\n")),
		Example: labExample,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), o) },
	}
	cmd.Flags().StringVar(&o.story, "story", lab.Stories()[0].Name, "how the cluster is broken: "+
		strings.Join(storyNames(), "|"))
	offer(cmd, "story", storyNames()...)
	cmd.Flags().BoolVar(&o.watch, "watch", false, "watch the cluster meanwhile, and collect the members while they run")
	cmd.Flags().StringVar(&o.dir, "dir", "", "keep data dirs, copies, plan and journal in this new folder (default: "+
		"scratch that is removed)")
	cmd.Flags().StringVar(&o.binary, "etcd-binary", "", "run the members with this etcd server")
	cmd.Flags().StringVar(&o.isolation, "isolation", "auto", "auto|netns|proxy: how servers are kept from the rest "+
		"of the world")
	return cmd
}

func storyNames() (out []string) {
	for _, s := range lab.Stories() {
		out = append(out, s.Name)
	}
	return out
}

func storyLines() (out []string) {
	for _, s := range lab.Stories() {
		out = append(out, fmt.Sprintf("  %-6s  %s", s.Name, s.Title))
	}
	return out
}

// labStory is one run; its files are in dir.
type labStory struct {
	o     *labOptions
	story lab.Story
	dir   string
	c     *lab.Cluster
	plan  *plan.Plan
	// watch is nil unless it was asked for.
	watch *labWatch
}

func runLab(ctx context.Context, o *labOptions) (err error) {
	isolation, err := node.ParseIsolation(o.isolation)
	if err != nil {
		return usagef("", "--isolation: %v", err)
	}
	stories := lab.Stories()
	if o.watch && o.story == "wiped" {
		return usagef("another --story", "--watch needs members that all run; in the story wiped one does not")
	}
	at := slices.IndexFunc(stories, func(x lab.Story) bool { return x.Name == o.story })
	if at < 0 {
		return usagef("one of "+strings.Join(storyNames(), ", "), "no story %q", o.story)
	}
	s := &labStory{o: o, story: stories[at], dir: o.dir}
	if s.dir != "" { // servers run elsewhere
		if s.dir, err = filepath.Abs(s.dir); err != nil {
			return err
		}
	}
	if s.dir == "" {
		if s.dir, err = os.MkdirTemp("", "etcd-medic-lab-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(s.dir)) }()
	} else if err := os.Mkdir(s.dir, 0o700); err != nil {
		return err
	}
	lo := lab.Options{Dir: filepath.Join(s.dir, "cluster"), Isolation: isolation, Server: node.Bundled()}
	if o.binary != "" {
		if lo.Server, err = node.External(ctx, o.binary); err != nil {
			return err
		}
	}
	s.say("1. three members of %s, auth on", lo.Server)
	if s.c, err = lab.Start(ctx, lo); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.c.Close()) }()
	for _, part := range []func(context.Context) error{s.diverge, s.diagnose, s.rehearse, s.apply, s.prove} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *labStory) say(format string, args ...any) {
	_, _ = fmt.Fprintln(s.o.io.Out, render.Safe(fmt.Sprintf(format, args...)))
}

// diverge breaks the cluster and continues to write; every write reports success.
func (s *labStory) diverge(ctx context.Context) error {
	if _, err := s.c.Write(ctx, 0, "/app/before/", 60); err != nil {
		return err
	}
	if err := s.watching(ctx); err != nil {
		return err
	}
	s.say("2. %s", s.story.Told)
	if err := s.c.Break(ctx, s.story); err != nil {
		return err
	}
	if s.watch != nil {
		if err := s.watch.raised(ctx); err != nil {
			return err
		}
	}
	total, through := 0, []string{}
	for _, i := range s.story.Through {
		n, err := s.c.Write(ctx, i, fmt.Sprintf("/app/through%d/", i+1), 20)
		if err != nil {
			return err
		}
		total += n
		through = append(through, fmt.Sprintf("node%d", i+1))
	}
	s.say("3. %d writes through %s: %d acknowledged. What the members say of themselves:", 20*len(through),
		strings.Join(through, ", "), total)
	return s.statuses(ctx)
}

func (s *labStory) statuses(ctx context.Context) error {
	st, err := s.c.Statuses(ctx)
	if err != nil {
		return err
	}
	for _, m := range st {
		if m.Ended != "" {
			s.say("     %s  does not run: %s", m.Name, m.Ended)
			continue
		}
		s.say("     %s  healthy=%v  leader=%-5v  raft index %d  revision %d", m.Name, m.Healthy, m.Leader, m.Index,
			m.Revision)
	}
	return nil
}

func (s *labStory) diagnose(ctx context.Context) error {
	copies := filepath.Join(s.dir, "copies")
	take := s.c.Copies
	if s.watch != nil {
		take = s.collect
	}
	if err := take(ctx, copies); err != nil {
		return err
	}
	r, err := compare.Diagnose(ctx, []evidence.Spec{{Where: copies}}, compare.Options{Version: Version()})
	if err != nil {
		return err
	}
	s.say("4. etcd-medic diagnose of copies of their data dirs: %s", r.Verdict.Class)
	s.say("     %s", r.Verdict.Summary)
	s.plan, err = plan.From(r, []evidence.Spec{{Where: copies}}, plan.Options{})
	if err != nil {
		return err
	}
	s.say("5. etcd-medic repair plan: keep %s; %s", s.plan.Best.Name, s.plan.Why)
	for i := range s.plan.Members {
		if m := &s.plan.Members[i]; m.Action != plan.Keep && m.Action != plan.Best {
			s.say("     %s %s: %s", m.Action, m.Name, m.Why)
		}
	}
	return s.plan.Save(s.file())
}

func (s *labStory) file() string { return filepath.Join(s.dir, "plan.yaml") }

func (s *labStory) rehearse(ctx context.Context) error {
	isolation, _ := node.ParseIsolation(s.o.isolation)
	out, err := run.Rehearse(ctx, s.file(), run.Options{Version: Version(), Isolation: isolation,
		EtcdBinary: s.o.binary})
	return s.result("6. etcd-medic repair rehearse, on the copies", out, err)
}

func (s *labStory) apply(ctx context.Context) error {
	out, err := run.Apply(ctx, s.file(), run.ApplyOptions{Mode: plan.Live, Live: s.c.Live(),
		Options: run.Options{Version: Version()}})
	return s.result("7. etcd-medic repair apply --mode live, against the running cluster", out, err)
}

func (s *labStory) result(what string, out *run.Outcome, err error) error {
	if err != nil {
		return err
	}
	s.say("%s: reached in %.1f s", what, out.Seconds)
	for _, p := range out.Proofs {
		s.say("     %-11s  %s  %s", p.Outcome, p.What, p.Detail)
	}
	return nil
}

func (s *labStory) prove(ctx context.Context) error {
	s.say("8. What the members say now:")
	if err := s.statuses(ctx); err != nil {
		return err
	}
	if s.watch != nil {
		if err := s.watch.over(ctx); err != nil {
			return err
		}
	}
	if err := s.c.StopAll(ctx); err != nil {
		return err
	}
	var specs []evidence.Spec
	for _, d := range s.c.DataDirs() {
		sp, err := evidence.ParseSpec(d)
		if err != nil {
			return err
		}
		specs = append(specs, sp)
	}
	r, err := compare.Diagnose(ctx, specs, compare.Options{Version: Version()})
	if err != nil {
		return err
	}
	s.say("9. etcd-medic diagnose of the stopped members: %s", r.Verdict.Class)
	if s.o.dir != "" {
		s.say("   everything is in %s", s.o.dir)
	}
	if r.Verdict.Health != check.Healthy {
		_ = render.Diagnosis(s.o.io.Err, render.Table, r, render.Options{}) // the exit code shows it already
		return result(ExitUnfinished)
	}
	return nil
}
