package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/internal/disk"
	"github.com/etcd-medic/etcd-medic/internal/progress"
	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/copies"
)

type nodeRunOptions struct {
	output
	sources
	command  []string
	binary   string
	isolate  string
	scratch  string
	timeout  time.Duration
	keep     bool
	forceNew bool
	asUser   bool
	// room replaces the file system's answer in tests.
	room func(dir string) (free int64, ok bool)
}

const nodeRunLong = `Copy data dirs to a scratch folder, start the copies as the original cluster, and print their
client addresses and the flags that etcdctl needs. ^C ends the servers and removes the copies. With a COMMAND after --,
that command runs instead of waiting, with ETCDCTL_ENDPOINTS, ETCDCTL_CACERT, ETCDCTL_CERT and ETCDCTL_KEY set, and
everything ends with it.

The sources are only read. The copies run in a sandbox: they keep their member IDs and peer URLs, a proxy redirects
these to loopback, and if the kernel allows it, a network namespace surrounds all of it (--isolation). At the end the
addresses that the members tried to reach are printed.

The client certificate is that of user root, so everything can be read with auth enabled, without a password. With
--login, users and passwords are required as in the cluster. Clients use unix sockets.

The server has the version that wrote the dirs, if this program contains it, else the next newer one; --etcd-binary
names another. An older one is refused. Running servers change the copies: leases expire, alarms and versions may
change.

A minority of the members cannot serve clients. --force-new-cluster starts a single one alone, as etcd does.

Without a COMMAND, -w json prints one document as soon as the members serve, for scripts: endpoints, certificates, logs,
and the etcdctl command line. ^C (or SIGTERM) then ends it as usual.

Exit codes: 0 ended by ^C or with the command, 1 failed, 2 wrong usage, 5 refused: it could not be run safely.`

const nodeRunExample = `  etcd-medic node run node1=/copies/node1 node2=/copies/node2 node3=/copies/node3
  etcd-medic node run /copies/node1 /copies/node2 /copies/node3 -- etcdctl get / --prefix --keys-only
  etcd-medic node run /copies/node1 /copies/node2 /copies/node3 -- bash
  etcd-medic node run --force-new-cluster /copies/node1
  etcd-medic node run -w json /copies/node1 /copies/node2 /copies/node3 > up.json &
  etcd-medic node run --etcd-binary /opt/etcd-3.4.3/etcd node1.tar.gz node2.tar.gz node3.tar.gz`

func newNodeRunCmd(s *Streams, run func(context.Context, *nodeRunOptions) error) *cobra.Command {
	o := &nodeRunOptions{output: output{io: s}, room: disk.Room}
	cmd := &cobra.Command{
		Use:     "run SOURCE... [-- COMMAND [ARG...]]",
		Short:   "run copies of data dirs as a throw-away cluster to inspect with etcdctl",
		Long:    nodeRunLong,
		Example: nodeRunExample,
		RunE: func(cmd *cobra.Command, args []string) error {
			if at := cmd.ArgsLenAtDash(); at >= 0 {
				args, o.command = args[:at], args[at:]
				if len(o.command) == 0 {
					return usagef("", "no command after --")
				}
				if cmd.Flags().Changed("write-out") {
					return usagef("the command finds the endpoints in its environment",
						"-w is for runs without a command")
				}
			}
			if len(args) == 0 {
				return usagef("see etcd-medic node run --help", "no source is named")
			}
			if o.forceNew && len(args) > 1 {
				return usagef("name the member to keep", "--force-new-cluster starts a single member")
			}
			if _, err := node.ParseIsolation(o.isolate); err != nil {
				return usagef("", "--isolation: %v", err)
			}
			if err := o.parseFiles(cmd, args); err != nil {
				return err
			}
			return run(cmd.Context(), o)
		},
	}
	o.output.flags(cmd)
	o.sources.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&o.binary, "etcd-binary", "", "run this etcd server instead of one that the program brings")
	f.StringVar(&o.isolate, "isolation", "auto", "how members are kept apart from the world: auto|netns|proxy")
	f.StringVar(&o.scratch, "scratch", "", "folder for the copies (default: the system's folder for temporary files)")
	f.DurationVar(&o.timeout, "timeout", 2*time.Minute, "how long the members may take to serve")
	f.BoolVar(&o.keep, "keep", false, "keep copies and logs at the end")
	f.BoolVar(&o.forceNew, "force-new-cluster", false, "start a single member as a separate cluster")
	f.BoolVar(&o.asUser, "login", false, "with auth enabled, clients log in as users instead of being root")
	offer(cmd, "isolation", "auto", "netns", "proxy")
	return cmd
}

// errDown means that the user ended the command.
var errDown = errors.New("down")

func runNodeRun(ctx context.Context, o *nodeRunOptions) (err error) {
	scratch, err := os.MkdirTemp(o.scratch, "etcd-medic-run-")
	if err != nil {
		return err
	}
	defer func() {
		if !o.keep {
			err = errors.Join(err, os.RemoveAll(scratch))
		}
	}()
	c, err := o.copies(ctx, scratch)
	if err != nil {
		return err
	}
	isolation, err := node.ParseIsolation(o.isolate)
	if err != nil {
		return err
	}
	server, err := node.Choose(ctx, c.Need, o.binary)
	if err != nil {
		return err
	}
	if r := c.Need.Raises(server.Version); r != "" {
		o.say("note: %s; these are copies", r)
	}
	s, err := node.New(ctx, node.Options{
		Dir: filepath.Join(scratch, "sandbox"), Server: server, Isolation: isolation, Auth: !o.asUser,
		UnsafeNoFsync: true, KnownPeers: c.Peers,
	})
	if err != nil {
		return err
	}
	defer func() {
		for _, l := range s.Proof().Lines() {
			o.say("%s", l)
		}
		err = errors.Join(err, s.Close())
		if o.keep {
			o.say("copies and logs are in %s", scratch)
		}
	}()
	if err := o.start(ctx, s, c); err != nil {
		return err
	}
	return o.serve(ctx, s)
}

// say prints a message in addition to the result.
func (o *nodeRunOptions) say(format string, args ...any) {
	o.io.lines(fmt.Sprintf(format, args...))
}

func (o *nodeRunOptions) progress(what string) {
	if p := o.io.Progress(); p != nil {
		p(what)
	}
}

// copies opens the sources, refuses those that cannot run, and copies the rest.
func (o *nodeRunOptions) copies(ctx context.Context, scratch string) (*copies.Cluster, error) {
	set, err := evidence.Open(ctx, o.specs, evidence.Options{Progress: o.progress})
	if err != nil {
		return nil, err
	}
	defer func() { _ = set.Close() }() // only scratch of archives
	for _, f := range set.Failed {
		return nil, f.Err
	}
	c, err := copies.Of(ctx, set)
	if err != nil {
		return nil, err
	}
	if !o.forceNew && c.Present < c.Quorum() {
		return nil, &refusal.Error{
			What: "a start",
			Reason: fmt.Sprintf("%d of %d voters are given, and fewer than %d cannot serve clients", c.Present,
				c.Voters,
				c.Quorum()),
			Hint: "give more members of the cluster, or start a single one with --force-new-cluster",
		}
	}
	need, err := c.Bytes()
	if err == nil {
		err = copies.Enough(scratch, need, o.room, copies.OtherScratch)
	}
	if err != nil {
		return nil, err
	}
	if err := c.Make(ctx, filepath.Join(scratch, "data"), o.progress); err != nil {
		return nil, err
	}
	return c, set.Unchanged(ctx)
}

// start starts the members and waits for them.
func (o *nodeRunOptions) start(ctx context.Context, s *node.Sandbox, c *copies.Cluster) error {
	o.progress(fmt.Sprintf("starting %d members", len(c.Members)))
	var members []*node.Member
	for _, m := range c.Members {
		m.Config.ForceNewCluster = o.forceNew
		started, err := s.Start(ctx, m.Config)
		if err != nil {
			return err
		}
		members = append(members, started)
	}
	wait, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	serving := 0
	for _, m := range members {
		shown := progress.Wait(wait, "waiting for "+m.Name())
		err := m.Ready(wait)
		shown.End()
		var ended *node.StartError
		switch {
		case err == nil:
			serving++
		case errors.As(err, &ended) && len(members) > 1: // the others may be enough
			o.say("%s: %v", m.Name(), err)
			for _, l := range ended.Lines {
				o.say("  %s", l)
			}
		default:
			return err
		}
	}
	if serving == 0 {
		return errors.New("no member serves")
	}
	return nil
}

// serve prints how to connect to the members, and waits for the user or runs the command.
func (o *nodeRunOptions) serve(ctx context.Context, s *node.Sandbox) error {
	flags := s.ClientFlags(nil)
	if len(o.command) > 0 {
		return o.run(ctx, flags)
	}
	o.io.clearStatus()
	if err := render.Document(o.io.Out, o.format, up(s, flags), upSheet(up(s, flags)), o.renderOptions()); err != nil {
		return err
	}
	<-ctx.Done()
	return errDown
}

// run runs the user's command with the variables that etcdctl reads.
func (o *nodeRunOptions) run(ctx context.Context, flags []string) error {
	cmd := exec.CommandContext(ctx, o.command[0], o.command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = o.io.In, o.io.Out, o.io.own()
	cmd.Env = os.Environ()
	for _, f := range flags {
		name, value, _ := strings.Cut(strings.TrimPrefix(f, "--"), "=")
		cmd.Env = append(cmd.Env, "ETCDCTL_"+strings.ToUpper(name)+"="+value)
	}
	endWithUs(cmd)
	runtime.LockOSThread() // it would be ended with the thread
	defer runtime.UnlockOSThread()
	o.io.clearStatus()
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", o.command[0], err)
	}
	return nil
}
