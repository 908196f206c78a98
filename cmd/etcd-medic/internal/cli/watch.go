package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/shell"
	"github.com/etcd-medic/etcd-medic/watch"
)

type watchOptions struct {
	output
	sources
	opt       watch.Options
	endpoints []string
	listen    string
	once      bool
	logFormat string
	verbose   bool
}

const watchLong = `Compare the members of a running cluster continuously, and report the first difference within a
minute.

It compares HashKV and the number of keys at one revision that all members have; revisions, by the raft indexes that
members have applied; auth revisions (AuthStatus from 3.5 on; before that the auth bucket of a snapshot stream, every
--auth-snapshot-interval, and soon after a member was started). A difference must be seen in two rounds. A member that
lags, restarts or is down raises nothing: it is compared up to its revision, or not at all. Members that were compacted
to different revisions, or run different versions, have no HashKV in common and are compared in the next rounds.

Watch only reads. AuthStatus goes through raft, so it adds one entry without effect to the log per member and round.
--hash-interval makes HashKV less frequent than other requests. Only hashes that differ are asked for again earlier, to
confirm it. With auth enabled, log in as a user with role root. Endpoints, certificates and user are also taken from
etcdctl's variables (ETCDCTL_ENDPOINTS and so on); --cluster takes all members from the member list when the watch
starts.

--listen serves /metrics for Prometheus, /healthz and /divergence. A Grafana dashboard and alert rules are in
deploy/watch. --collect-on-divergence saves in a new folder, for the first 5 divergences, what the network gives: the
event, what every member answered, the revision from which hashes differ, the servers' metrics, a snapshot of every
member, and the commands that collect the logs. --on-divergence runs a program for every event, without arguments and
without a shell. It gets ETCD_MEDIC_EVENT (diverged or over), ETCD_MEDIC_KIND, ETCD_MEDIC_MEMBERS, ETCD_MEDIC_DETAIL and
ETCD_MEDIC_EVIDENCE, and the event as JSON on standard input.

--once runs some rounds, prints the result and ends, for timers.

If watch reports a divergence, run etcd-medic collect on every member and then etcd-medic diagnose. Do not restart a
member before.

Exit codes: 0 ended by a signal, or with --once: all members agree; 1 could not listen; 2 wrong usage; 3 with --once:
members differ; 4 with --once: not all members could be compared.`

const watchExample = `  etcd-medic watch --endpoints http://10.0.0.1:2379,http://10.0.0.2:2379,http://10.0.0.3:2379 --listen 127.0.0.1:9979
  etcd-medic watch --endpoints http://10.0.0.1:2379 --cluster --once
  etcd-medic watch --endpoints https://10.0.0.1:2379,https://10.0.0.2:2379 --cacert ca.crt --cert root.crt --key root.key --once
  etcd-medic watch --endpoints http://10.0.0.1:2379,http://10.0.0.2:2379 --collect-on-divergence /evidence --on-divergence /usr/local/bin/page`

func newWatchCmd(s *Streams, run func(context.Context, *watchOptions) error) *cobra.Command {
	o := &watchOptions{output: output{io: s}}
	cmd := &cobra.Command{
		Use:     "watch --endpoints URL,...",
		Short:   "compare running members continuously",
		Long:    watchLong,
		Example: watchExample,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			urls, err := s.clusterOf(cmd, withScheme(o.endpoints, o.access), o.access)
			if err != nil {
				return err
			}
			o.endpoints = bareURLs(urls)
			if err := o.check(flagIs(cmd, "cluster", "true")); err != nil {
				return err
			}
			return run(cmd.Context(), o)
		},
	}
	o.output.flags(cmd)
	o.accessFlags(cmd)
	f := cmd.Flags()
	f.StringSliceVar(&o.endpoints, "endpoints", nil, "client URLs of all members, each its own")
	clusterFlag(cmd, new(bool))
	f.DurationVar(&o.opt.Interval, "interval", 15*time.Second, "time between rounds")
	f.DurationVar(&o.opt.HashInterval, "hash-interval", 0,
		"time between comparisons of content by HashKV (default: --interval)")
	f.DurationVar(&o.opt.BucketInterval, "auth-snapshot-interval", time.Hour, "members before 3.5: time between "+
		"snapshot streams for their auth revision, if none is started meanwhile; 0 for none")
	f.DurationVar(&o.opt.Timeout, "ask-timeout", 10*time.Second, "how long a member may take to answer")
	f.StringVar(&o.listen, "listen", "", "address for /metrics, /healthz and /divergence, such as 127.0.0.1:9979")
	f.StringVar(&o.opt.Keep, "collect-on-divergence", "",
		"folder for snapshots, hashes and metrics of all members when a divergence is raised")
	f.StringVar(&o.opt.Hook, "on-divergence", "", "program to run for every event; it gets no arguments")
	f.DurationVar(&o.opt.HookTimeout, "hook-timeout", time.Minute, "how long the program may run")
	f.BoolVar(&o.once, "once", false, "make some rounds, print the result and end")
	f.StringVar(&o.logFormat, "log-format", "text", "log on standard error: text|json")
	f.BoolVar(&o.verbose, "verbose", false, "log every round")
	return cmd
}

// check checks the flags. listed is true if the endpoints are those that the cluster lists.
func (o *watchOptions) check(listed bool) error {
	switch {
	case o.format != render.Table && o.format != render.JSON:
		return usagef("want table or json", "-w %s: this command has no rows", o.format)
	case len(o.endpoints) < 2:
		return usagef("--endpoints URL,URL,... or --endpoints URL --cluster",
			"at least two members are needed for a comparison")
	case o.opt.Interval < time.Second:
		return usagef("", "--interval must be 1s or more")
	case o.opt.HashInterval < 0 || o.opt.BucketInterval < 0 || o.opt.Timeout <= 0 || o.opt.HookTimeout <= 0:
		return usagef("", "times must not be negative")
	case o.logFormat != "text" && o.logFormat != "json":
		return usagef("want text or json", "--log-format %s is not known", o.logFormat)
	case o.once && o.listen != "":
		return usagef("", "--once does not stay to listen")
	}
	seen := map[string]bool{}
	for _, e := range o.endpoints {
		if !evidence.IsEndpoint(e) {
			return usagef("http(s)://HOST:PORT", "%q is not a client URL", e)
		}
		switch {
		case seen[e] && listed:
			return usagef("--endpoints URL,URL,... with a URL of each member, without --cluster",
				"the cluster lists %s for several members: it is unknown which of them answers there", e)
		case seen[e]:
			return usagef("name each member once", "%s is named twice", e)
		}
		seen[e] = true
	}
	return nil
}

func runWatch(ctx context.Context, o *watchOptions) error {
	o.opt.Log = o.logger()
	o.opt.Members = watch.Connect(o.endpoints, o.access)
	w := watch.New(o.opt)
	if o.once {
		err := o.runOnce(ctx, w)
		return errors.Join(err, w.Close())
	}
	stop, err := o.serve(ctx, w)
	if err != nil {
		return err
	}
	o.opt.Log.Info("watching", "members", len(o.endpoints), "interval", o.opt.Interval.String(), "version", Version())
	err = errors.Join(w.Run(ctx), stop(), w.Close())
	o.opt.Log.Info("ended")
	if err == nil {
		return errDown
	}
	return err
}

func (o *watchOptions) logger() *slog.Logger {
	opt := &slog.HandlerOptions{Level: slog.LevelInfo}
	if o.verbose {
		opt.Level = slog.LevelDebug
	}
	if o.logFormat == "json" {
		return slog.New(slog.NewJSONHandler(o.io.Err, opt))
	}
	return slog.New(slog.NewTextHandler(o.io.Err, opt))
}

// shutdown bounds the wait for answers to requests when the watch ends. Connections without one are cut then.
const shutdown = 500 * time.Millisecond

// serve listens until the returned function is called.
func (o *watchOptions) serve(ctx context.Context, w *watch.Watcher) (stop func() error, err error) {
	if o.listen == "" {
		return func() error { return nil }, nil
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", o.listen)
	if err != nil {
		return nil, err
	}
	srv := &http.Server{Handler: w.Handler(), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 30 * time.Second, MaxHeaderBytes: 16 << 10}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	o.opt.Log.Info("listening", "address", l.Addr().String())
	return func() error {
		ctx, cancel := context.WithTimeout(context.Background(), shutdown)
		defer cancel()
		err := srv.Shutdown(ctx)
		if errors.Is(err, context.DeadlineExceeded) {
			err = srv.Close()
		}
		if e := <-done; !errors.Is(e, http.ErrServerClosed) {
			err = errors.Join(err, e)
		}
		return err
	}, nil
}

// oncePause is the time between the rounds of --once: long enough for a write or a change of rights to reach all
// members.
const oncePause = 2 * time.Second

// onceResult is the output of --once.
type onceResult struct {
	SchemaVersion int  `json:"schemaVersion"`
	Compared      bool `json:"compared"`
	// Unasked are the members that the cluster lists and no endpoint is given for.
	Unasked     []string      `json:"unasked,omitempty"`
	Revision    *int64        `json:"revision"`
	Members     []onceMember  `json:"members"`
	Divergences []watch.Event `json:"divergences"`
}

// onceMember is what a member said; what is not known is nil.
type onceMember struct {
	Endpoint     string   `json:"endpoint"`
	Name         string   `json:"name"`
	Error        string   `json:"error,omitempty"`
	Version      string   `json:"version,omitempty"`
	Revision     *int64   `json:"revision"`
	AppliedIndex *uint64  `json:"appliedIndex"`
	HashKV       *uint32  `json:"hashKV"`
	Keys         *int64   `json:"keys"`
	AuthRevision *uint64  `json:"authRevision"`
	Alarms       []string `json:"alarms"`
	// NotCompared is why the content of a member that answered was not compared.
	NotCompared string `json:"notCompared,omitempty"`
	// NoLeader is true if the member answered and knows no leader.
	NoLeader bool `json:"noLeader,omitempty"`
}

func (o *watchOptions) runOnce(ctx context.Context, w *watch.Watcher) error {
	r, events, err := w.Once(ctx, oncePause)
	if err != nil {
		return err
	}
	res := onceResult{SchemaVersion: 1, Compared: watch.Compared(&r), Unasked: r.Unasked, Divergences: events}
	if r.Revision > 0 {
		res.Revision = &r.Revision
	}
	for i := range r.Members {
		m := onceMemberOf(&r.Members[i])
		m.NotCompared = shell.OneLine(r.NotCompared(i))
		res.Members = append(res.Members, m)
	}
	if err := o.print(&res); err != nil {
		return err
	}
	switch {
	case len(events) > 0:
		return result(ExitFindings)
	case !res.Compared:
		return result(ExitInconclusive)
	}
	return nil
}

func onceMemberOf(s *watch.Seen) onceMember {
	m := onceMember{Endpoint: s.Endpoint, Name: s.Name}
	if s.Err != nil {
		m.Error = shell.OneLine(s.Err.Error())
		return m
	}
	m.Version, m.Revision, m.Keys = s.Second.Version, &s.Second.Revision, s.Keys
	if s.Second.Applied > 0 { // 3.3 does not say it
		m.AppliedIndex = &s.Second.Applied
	}
	m.Alarms, m.NoLeader = append([]string{}, s.Alarms...), s.Second.Leader == 0
	if s.Hash != nil {
		m.HashKV = &s.Hash.Hash
	}
	if s.Auth != nil {
		m.AuthRevision = &s.Auth.Revision
	}
	return m
}

func (o *watchOptions) print(res *onceResult) error {
	if o.format == render.JSON {
		enc := json.NewEncoder(render.SafeJSONWriter(o.io.Out))
		enc.SetIndent("", "  ")
		return enc.Encode(res)
	}
	var b strings.Builder
	switch {
	case len(res.Divergences) > 0:
		fmt.Fprintf(&b, "members differ\n")
	case res.Compared && res.Revision != nil:
		fmt.Fprintf(&b, "all %d members agree at revision %d\n", len(res.Members), *res.Revision)
	default:
		fmt.Fprintf(&b, "not all members could be compared\n")
	}
	if len(res.Unasked) > 0 {
		fmt.Fprintf(&b, "  not asked: %s, which the cluster lists too\n", strings.Join(res.Unasked, ", "))
	}
	for _, e := range res.Divergences {
		fmt.Fprintf(&b, "  %-9s %s: %s\n", e.Kind, strings.Join(e.Members, ", "), e.Detail)
	}
	for _, m := range res.Members {
		fmt.Fprintf(&b, "  %s\n", m.line())
	}
	switch silent := slices.ContainsFunc(res.Members, func(m onceMember) bool { return m.Error != "" }); {
	case len(res.Divergences) == 0 && silent:
		fmt.Fprintf(&b, "next: start the members that do not answer, or correct their URLs, the certificates or the "+
			"user as their lines say, and run again\n")
	case len(res.Divergences) == 0 && len(res.Unasked) > 0:
		fmt.Fprintf(&b, "next: name the URLs of all members, or give one and --cluster, and run again\n")
	case len(res.Divergences) > 0:
		fmt.Fprintf(&b, "next: on the host of every member, %s\n",
			shell.Format("etcd-medic collect -o <MEMBER>.tar.zst"))
	}
	_, err := o.io.Out.Write([]byte(render.Safe(b.String())))
	return err
}

func (m *onceMember) line() string {
	if m.Error != "" {
		return fmt.Sprintf("%s does not answer: %s", m.Endpoint, m.Error)
	}
	s := fmt.Sprintf("%s (%s) %s, revision %d", m.Name, m.Endpoint, m.Version, *m.Revision)
	if m.AppliedIndex != nil {
		s += fmt.Sprintf(", applied index %d", *m.AppliedIndex)
	}
	if m.HashKV != nil {
		s += fmt.Sprintf(", HashKV %08x", *m.HashKV)
	}
	if m.Keys != nil {
		s += ", " + plural.Of(*m.Keys, "key", "keys")
	}
	if m.AuthRevision != nil {
		s += fmt.Sprintf(", auth revision %d", *m.AuthRevision)
	}
	if len(m.Alarms) > 0 {
		s += ", alarm " + strings.Join(m.Alarms, " ")
	}
	if m.NoLeader {
		s += "; it knows no leader"
	}
	if m.NotCompared != "" {
		s += "; not compared: " + m.NotCompared
	}
	return s
}
