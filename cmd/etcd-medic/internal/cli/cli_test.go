package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

func streams(env map[string]string) (*Streams, *bytes.Buffer, *bytes.Buffer) {
	var out, err bytes.Buffer
	return &Streams{Out: &out, Err: &err, Getenv: func(k string) string { return env[k] }}, &out, &err
}

func TestExitCode(t *testing.T) {
	missing := &evidence.SourceError{Where: "x", Err: &fs.PathError{Op: "stat", Path: "x", Err: fs.ErrNotExist}}
	denied := &evidence.SourceError{Where: "x", Err: &fs.PathError{Op: "open", Path: "x", Err: fs.ErrPermission}}
	for _, tc := range []struct {
		name string
		err  error
		want int
	}{
		{"nil", nil, ExitDone},
		{"findings", result(ExitFindings), ExitFindings},
		{"done", result(ExitDone), ExitDone},
		{"usage", usagef("", "wrong"), ExitUsage},
		{"wrapped usage", fmt.Errorf("a: %w", usagef("", "wrong")), ExitUsage},
		{"missing", missing, ExitUsage},
		{"no etcd source", errors.Join(&evidence.SourceError{Where: "y"}, missing), ExitUsage},
		{"not readable", denied, ExitError},
		{"interrupted", fmt.Errorf("reading: %w", context.Canceled), ExitInterrupted},
		{"no plan", fmt.Errorf("status: %w", &plan.MissingError{Path: "plan.yaml"}), ExitUsage},
		{"else", errors.New("boom"), ExitError},
	} {
		if got := exitCode(tc.err); got != tc.want {
			t.Errorf("%s: code %d, want %d", tc.name, got, tc.want)
		}
	}
}

func TestReportCode(t *testing.T) {
	const yes, no, open = check.Healthy, check.Unhealthy, check.HealthUnknown
	report := func(health check.Health, sev ...check.Severity) *compare.Report {
		r := &compare.Report{Verdict: compare.Verdict{Health: health}, InputsUnchanged: true}
		for _, s := range sev {
			r.Findings = append(r.Findings, check.Finding{Severity: s})
		}
		return r
	}
	failed := report(yes)
	failed.Sources = []compare.Source{{Name: "n", Error: "gone"}}
	changed := report(no, check.Critical)
	changed.InputsUnchanged = false
	refuted := report(yes)
	refuted.AddConfirmation(&compare.Confirmation{Members: []compare.ConfirmedMember{{Member: "n",
		Status: compare.Refuted}}})
	for _, tc := range []struct {
		name   string
		r      *compare.Report
		failOn failOn
		want   int
	}{
		{"healthy", report(yes), "error", ExitDone},
		{"warning below", report(yes, check.Warning), "error", ExitDone},
		{"warning at", report(yes, check.Warning), "warning", ExitFindings},
		{"critical above", report(no, check.Critical), "error", ExitFindings},
		{"error below critical", report(no, check.Error), "critical", ExitDone},
		{"never", report(no, check.Critical), "never", ExitDone},
		{"inconclusive", report(open), "error", ExitInconclusive},
		{"inconclusive with findings", report(open, check.Error), "error", ExitFindings},
		{"never does not hide inconclusive", report(open, check.Error), "never", ExitInconclusive},
		{"a source failed", failed, "error", ExitInconclusive},
		{"a source changed", changed, "never", ExitInconclusive},
		{"healthy and refuted by a server", refuted, "error", ExitInconclusive},
	} {
		if got := reportCode(tc.r, tc.failOn); got != tc.want {
			t.Errorf("%s: code %d, want %d", tc.name, got, tc.want)
		}
	}
}

// TestDiagnoseOptions looks at what a command line becomes, without running it.
func TestDiagnoseOptions(t *testing.T) {
	s, _, _ := streams(map[string]string{"ETCD_MEDIC_FAIL_ON": "warning", "ETCD_MEDIC_WRITE_OUT": "json"})
	var got *diagnoseOptions
	cmd := newDiagnoseCmd(s, func(_ context.Context, o *diagnoseOptions) error { got = o; return nil })
	cmd.PersistentPreRunE = func(c *cobra.Command, _ []string) error { return setFromEnv(c, s) }
	cmd.SetArgs([]string{"n1=/a", "/b=c", "-w", "table", "--wal-dir", "n1=/w"})
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	want := []evidence.Spec{{Name: "n1", Where: "/a", WALDir: "/w"}, {Where: "/b=c"}}
	if d := cmp.Diff(want, got.specs); d != "" {
		t.Errorf("specs (-want +got):\n%s", d)
	}
	if got.format != "table" || got.failOn != "warning" {
		t.Errorf("format %s, fail-on %s: the command line wins over the environment, which wins over the default",
			got.format, got.failOn)
	}
}

// TestVariablesOfSettingsOnly: what a login needs does not filter a listing, and no variable chooses or consents.
func TestVariablesOfSettingsOnly(t *testing.T) {
	root := newRoot(&Streams{Out: io.Discard, Err: io.Discard, Getenv: os.Getenv})
	for name, want := range map[string][]string{
		"dumplog": {"follow-idle", "stream-decoder-timeout", "values", "write-out"},
		"dumpdb":  {"cacert", "cert", "tls-key", "user", "values", "write-out"},
		"extract": {"cacert", "cert", "key", "user", "values", "write-out"},
		"repair apply": {"cacert", "cert", "etcd-binary", "hook-timeout", "isolation", "key", "password-file", "user",
			"values", "work", "write-out"},
	} {
		cmd, _, err := root.Find(strings.Fields(name))
		if err != nil {
			t.Fatal(err)
		}
		var set []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if isSetting(cmd, f.Name) {
				set = append(set, f.Name)
			}
		})
		if d := cmp.Diff(want, set); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
	s, _, stderr := streams(map[string]string{"ETCD_MEDIC_KEY": "/x", "ETCD_MEDIC_USER": "root",
		"ETCD_MEDIC_PREFIX": "/y", "ETCD_MEDIC_VALUES": "true"})
	var key, user, prefix string
	var values bool
	cmd := newRoot(s)
	list := &cobra.Command{Use: "list", RunE: func(*cobra.Command, []string) error { return nil }}
	list.Flags().StringVar(&key, "key", "", "")
	list.Flags().StringVar(&user, "user", "", "")
	list.Flags().StringVar(&prefix, "prefix", "", "")
	list.Flags().BoolVar(&values, "values", false, "")
	cmd.AddCommand(list)
	cmd.SetArgs([]string{"list"})
	if err := cmd.Execute(); err != nil || key+user+prefix != "" || !values {
		t.Errorf("key %q, user %q, prefix %q, values %v, %v", key, user, prefix, values, err)
	}
	if got := stderr.String(); !strings.Contains(got, "ETCD_MEDIC_PREFIX has no effect") ||
		strings.Contains(got, "ETCD_MEDIC_KEY") {
		t.Errorf("stderr %q", got)
	}
}

// TestInterrupt: a run that is interrupted says so with its code, whatever the command returned.
func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s, _, stderr := streams(nil)
	if code := Main(ctx, []string{"diagnose", t.TempDir()}, s); code != ExitInterrupted {
		t.Errorf("code %d, want %d", code, ExitInterrupted)
	}
	if got := stderr.String(); got != "etcd-medic: interrupted\n" {
		t.Errorf("stderr %q", got)
	}
}

func TestOrdered(t *testing.T) {
	const n = 500
	var out []string
	err := ordered(t.Context(), func(_ context.Context, emit func(int) error) error {
		for i := range n {
			if err := emit(i); err != nil {
				return err
			}
		}
		return nil
	}, func(i int, buf []byte) ([]byte, error) {
		if i%7 == 0 {
			time.Sleep(100 * time.Microsecond) // later batches overtake this one
		}
		return fmt.Append(buf, i), nil
	}, func(b []byte) error {
		out = append(out, string(b))
		return nil
	})
	if err != nil || len(out) != n {
		t.Fatalf("%d of %d batches, error %v", len(out), n, err)
	}
	for i, s := range out {
		if s != fmt.Sprint(i) {
			t.Fatalf("batch %d is %s", i, s)
		}
	}
}

func TestOrderedEndsOnError(t *testing.T) {
	boom := errors.New("boom")
	endless := func(ctx context.Context, emit func(int) error) error {
		for i := 0; ; i++ {
			if err := emit(i); err != nil {
				return err
			}
		}
	}
	fail := func(at int32) func() error {
		var n atomic.Int32
		return func() error {
			if n.Add(1) > at {
				return boom
			}
			return nil
		}
	}
	work, write := fail(20), fail(20)
	ok := func(int, []byte) ([]byte, error) { return nil, nil }
	if err := ordered(t.Context(), endless, func(int, []byte) ([]byte, error) { return nil, work() },
		func([]byte) error { return nil }); !errors.Is(err, boom) {
		t.Errorf("work failed, got %v", err)
	}
	if err := ordered(t.Context(), endless, ok, func([]byte) error { return write() }); !errors.Is(err, boom) {
		t.Errorf("write failed, got %v", err)
	}
	if err := ordered(t.Context(), func(context.Context, func(int) error) error { return boom }, ok,
		func([]byte) error { return nil }); !errors.Is(err, boom) {
		t.Errorf("produce failed, got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := ordered(ctx, endless, ok, func([]byte) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled, got %v", err)
	}
}

func TestParseRange(t *testing.T) {
	for _, tc := range []struct {
		in       string
		from, to uint64
		bad      bool
	}{
		{in: "5", from: 5, to: 5},
		{in: "1..10", from: 1, to: 10},
		{in: "5..", from: 5},
		{in: "..10", to: 10},
		{in: "~10", from: 91},
		{in: "~1", from: 100},
		{in: "~1000", from: 1},
		{in: "0..5", to: 5},
		{in: "0", bad: true},
		{in: "5..0", bad: true},
		{in: "7..3", bad: true},
		{in: "..", bad: true},
		{in: "~0", bad: true},
		{in: "~", bad: true},
		{in: "x", bad: true},
		{in: "1..x", bad: true},
		{in: "-1", bad: true},
	} {
		l := logFilter{index: tc.in}
		err := l.parseRange(100)
		if (err != nil) != tc.bad {
			t.Errorf("%s: error %v", tc.in, err)
			continue
		}
		if !tc.bad && (l.filter.From != tc.from || l.filter.To != tc.to) {
			t.Errorf("%s: %d..%d, want %d..%d", tc.in, l.filter.From, l.filter.To, tc.from, tc.to)
		}
	}
}

// TestOverwrites: an entry is overwritten when a later append begins at or below its index; the appending entry itself
// is not.
func TestOverwrites(t *testing.T) {
	entry := func(off int64, term, index uint64) dumplog.Record {
		data := []byte{0x10, byte(term), 0x18, byte(index)}
		return dumplog.Record{Pos: dumplog.Pos{Segment: "s", Offset: off}, Type: dumplog.RecordEntry, Data: data}
	}
	recs := []dumplog.Record{entry(0, 1, 1), entry(8, 1, 2), entry(16, 1, 3), entry(24, 2, 2), entry(32, 2, 3),
		entry(40, 3, 3)}
	o := newOverwrites([]dumplog.Overwrite{{Pos: recs[3].Pos, Term: 2, Index: 2},
		{Pos: recs[5].Pos, Term: 3, Index: 3}})
	var got []bool
	for _, r := range recs {
		got = append(got, o.at(r))
	}
	if d := cmp.Diff([]bool{false, true, true, false, true, false}, got); d != "" {
		t.Errorf("overwritten (-want +got):\n%s", d)
	}
	// A received snapshot, whose record is no entry, ended the log from entry 3 on.
	o = newOverwrites([]dumplog.Overwrite{{Pos: dumplog.Pos{Segment: "s", Offset: 20}, Term: 2, Index: 3}})
	got = []bool{o.at(recs[0]), o.at(recs[2]), o.at(recs[4])}
	if d := cmp.Diff([]bool{false, true, false}, got); d != "" {
		t.Errorf("before and after a snapshot (-want +got):\n%s", d)
	}
}

func TestProposers(t *testing.T) {
	m := &evidence.Member{}
	m.Membership.Names = map[dumplog.ID]string{0xaaaa0001: "a", 0xbbbb0002: "b", 0xcccc0001: "c"}
	m.Membership.Voters = []dumplog.ID{0xaaaa0001, 0xdddd0003}
	p := newProposers(m)
	for id, want := range map[dumplog.RequestID]string{0: "", 2 << 48: "b", 1 << 48: "a|c", 3 << 48: "dddd0003",
		0xbeef << 48: "…beef"} {
		if got := p.of(id); got != want {
			t.Errorf("%x: proposer %q, want %q", uint64(id), got, want)
		}
	}
}

func TestEntryKinds(t *testing.T) {
	kinds, err := entryKinds([]string{"IRRPut", "conf-change", "auth_enable"})
	if d := cmp.Diff([]dumplog.Kind{"put", "conf_change", "auth_enable"}, kinds); err != nil || d != "" {
		t.Errorf("%v %s", err, d)
	}
	all, err := entryKinds([]string{"InternalRaftRequest"})
	if err != nil || len(all) < 30 {
		t.Errorf("InternalRaftRequest has %d kinds, error %v", len(all), err)
	}
	if _, err := entryKinds([]string{"nonsense"}); exitCode(err) != ExitUsage {
		t.Errorf("nonsense: %v", err)
	}
}

func TestBucketName(t *testing.T) {
	for in, want := range map[string]string{
		"auth-users": "authUsers", "AUTHROLES": "authRoles", "members-removed": "members_removed", "keys": "key",
		"leases": "lease", "other": "other",
	} {
		if got := bucketName(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

// TestProgress: the line is shown to a person only, without control characters, and is gone before a message.
func TestProgress(t *testing.T) {
	s, _, stderr := streams(nil)
	if s.Progress() != nil {
		t.Error("progress without a terminal")
	}
	s.ErrTTY, s.Width = true, 40
	s.Progress()("reading a\x1b[31mb" + strings.Repeat("x", 100))
	s.errorf("wrong")
	got := stderr.String()
	if strings.Contains(got, "\x1b") || !strings.HasSuffix(got, "\retcd-medic: wrong\n") {
		t.Errorf("stderr %q", got)
	}
}

// TestEveryCommandIsExplained: short and long text, an example, exit codes.
func TestEveryCommandIsExplained(t *testing.T) {
	s, _, _ := streams(nil)
	for _, c := range newRoot(s).Commands() {
		if c.Hidden || c.Name() == "help" || c.Name() == "completion" || c.Name() == "version" {
			continue
		}
		if c.Short == "" || c.Long == "" {
			t.Errorf("%s: no text", c.Name())
		}
		if c.Runnable() && (c.Example == "" || !strings.Contains(c.Long, "Exit codes:")) {
			t.Errorf("%s: no example or no exit codes", c.Name())
		}
	}
}

// TestErrorsAreWrapped: on a terminal an error and its hint are wrapped at the words, and a command stays on a line of
// its own; elsewhere each is one line.
func TestErrorsAreWrapped(t *testing.T) {
	const prose = "hint: name the member whose backup is kept with --best, usually that of the newest; see"
	const command = "etcd-medic compare node1=/copies/node1 node2=/copies/node2 node3=/copies/node3"
	for _, c := range []struct {
		width      int
		text, want string
	}{
		{0, prose + " " + command, prose + " " + command},
		{80, "hint: see etcd-medic help sources", "hint: see etcd-medic help sources"},
		{80, prose + " " + command, strings.Replace(prose, " newest", "\nnewest", 1) + "\n    " + command},
		{30, "etcd-medic: a: found nothing at this path", "etcd-medic: a: found nothing\nat this path"},
		{20, "x " + strings.Repeat("y", 30) + " z", "x\n" + strings.Repeat("y", 30) + "\nz"},
	} {
		if got := (&Streams{errWidth: c.width}).wrapError(c.text); got != c.want {
			t.Errorf("%d: %q, want %q", c.width, got, c.want)
		}
	}
}
