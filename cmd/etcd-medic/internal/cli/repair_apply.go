package cli

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/repair/run"
	"github.com/etcd-medic/etcd-medic/shell"
)

type repairApplyOptions struct {
	output
	sources
	sandboxOptions
	live     run.LiveOptions
	file     string
	mode     string
	out      string
	dataDirs []string
	password string
	upgrade  bool
}

const repairApplyLong = `Apply a plan and prove the result.

--mode mend -o DIR     damaged data dirs repaired from their own log and pages, or with the help of other members, as
                       it was tried when the plan was made. Copies of them are started in a sandbox as proof. Each
                       replaces the old one on its own host; IDs stay, and no other member is touched.
--mode clone -o DIR    new data dirs for all members from the best member's database; member and cluster IDs stay.
                       Copies of them are started in a sandbox as proof. All members are stopped and replaced together.
--mode rebuild -o DIR  if no data dir is usable: new data dirs for all members from a database that is rebuilt from
                       their logs, on a backup or from the first entry; otherwise as clone.
--mode reseed -o DIR   the steps of the rehearsal, applied to copies; the result is the new data dirs. The server that
                       ran them writes them: use --etcd-binary with the cluster's own version.
--mode live            repair the running cluster through its client API: save a backup, move the leader to the best
                       member, then remove and re-add one member at a time. Strict reconfiguration checks stay on; the
                       first mismatch stops the run. --hook-stop, --hook-wipe and --hook-start stop a member, move its
                       data dir aside and start it. Without hooks you do this: the steps are printed one by one and
                       wait for an answer.

If the cluster has no leader, the plan's start steps run first; all checks run once a leader is elected and before any
other step. Name these members in --endpoints too: URLs, or NAME=URL. If no member answers at a URL, its member is
identified when it comes up there.

Before each step that stops, removes or adds a member, the serving voters are counted. The step begins only if a
majority is left without the member. Otherwise it waits, says for which member and how to start it, and counts again. It
gives up after --quorum-wait; at a terminal you are asked instead. A step that gave up has changed nothing. repair abort
says how to go back; the same command continues.

Live mode reports how far the members advanced since the plan's copies. It refuses if a member to be removed has since
applied writes that the best member lacks and the plan does not list; --accept-lost-writes continues nevertheless. Right
before a member is removed, its own snapshot is saved next to that of the best one (--backup), and the comparison is
repeated. After its stop the old data dir is compared too, if it can be read here: under --data-dir, where it was moved
to next to that, or where a hook has put a copy (ETCD_MEDIC_SET_ASIDE). If its server has --wal-dir, give that too, as
NAME=PATH on the member's host. The last lines name the keys that only it held, and the script that puts them.

With auth on, log in as a user with role root: --user NAME and the password in --password-file, in ETCD_MEDIC_PASSWORD,
or typed in; or with --cert and --key whose common name is root.

Hooks are shell commands. They find ETCD_MEDIC_ACTION (stop, wipe, start), ETCD_MEDIC_MEMBER_NAME, ETCD_MEDIC_MEMBER_ID,
ETCD_MEDIC_OLD_MEMBER_ID, ETCD_MEDIC_DATA_DIR, ETCD_MEDIC_SET_ASIDE, ETCD_MEDIC_PEER_URLS, ETCD_MEDIC_CLIENT_URLS and,
for start, ETCD_MEDIC_INITIAL_CLUSTER and ETCD_MEDIC_INITIAL_CLUSTER_STATE in their environment. Running them twice must
do no harm; wipe must move the data dir aside, not delete it, and the log too where the server has --wal-dir; start must
return and leave the server running. On another host than this one, wipe makes the folder of ETCD_MEDIC_SET_ASIDE before
it moves something there. A hook that fails, or still runs after --hook-timeout, ends the run. So does a member that
still answers after stop, or comes back under its old ID after start. The output of hooks is saved next to the plan, in
PLAN.hooks.log.

The variables come from the cluster: write them in double quotes, and after -- if a command takes flags, as in the
example. A member whose name begins with a dash or contains control characters is refused before a hook runs. A second
shell on the other side reads what is sent through ssh. Send names there as data
(printf '%s' "$ETCD_MEDIC_DATA_DIR" | ssh ...), or let the script on the other side know the path.

Nothing is deleted, and sources are only read. Every action is in the journal next to the plan, flushed before and after
every step: the same command continues where an interrupted run ended. etcd-medic repair status shows it.

Exit codes: 0 all proofs hold, 1 could not read or write, 2 wrong usage, 5 refused: a precondition does not hold and
nothing was started; 6 started and not finished (also if missing voters did not come up), or a proof is violated.`

const repairApplyExample = `  etcd-medic repair apply plan.yaml --mode mend -o mended
  etcd-medic repair apply plan.yaml --mode clone -o new-dirs
  etcd-medic repair apply plan.yaml --mode reseed -o new-dirs --etcd-binary /usr/local/bin/etcd
  etcd-medic repair apply plan.yaml --mode live --endpoints https://10.0.0.1:2379,https://10.0.0.2:2379 --cacert ca.crt --cert root.crt --key root.key
  etcd-medic repair apply plan.yaml --mode live --endpoints http://10.0.0.1:2379 --user root --password-file root.password \
      --hook-stop 'ssh -- "$ETCD_MEDIC_MEMBER_NAME" systemctl stop etcd' --hook-wipe ./aside.sh --hook-start ./start.sh`

func newRepairApplyCmd(s *Streams, run func(context.Context, *repairApplyOptions) error) *cobra.Command {
	o := &repairApplyOptions{output: output{io: s}}
	cmd := &cobra.Command{
		Use:     "apply PLAN --mode mend|clone|rebuild|reseed|live [SOURCE...]",
		Short:   "apply a plan: write new data dirs, or repair the running cluster",
		Long:    repairApplyLong,
		Example: repairApplyExample,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.live.Endpoints = withScheme(o.live.Endpoints, accessOf(cmd))
			if err := o.prepare(cmd.Context(), s, args); err != nil {
				return err
			}
			if flagIs(cmd, "cluster", "true") {
				access := evidence.Access{CACert: o.live.CACert, Cert: o.live.Cert, Key: o.live.Key}
				if o.live.User != "" {
					access.User = o.live.User + ":" + o.live.Password
				}
				urls, err := s.clusterOf(cmd, o.live.Endpoints, access)
				if err != nil {
					return err
				}
				o.live.Endpoints = bareURLs(urls) // the members say which member of the plan each is
			}
			o.live.Flags = sameAgain(cmd.Flags(), o.live.Endpoints, args[1:])
			return run(cmd.Context(), o)
		},
	}
	o.output.flags(cmd)
	o.fullFlag(cmd)
	o.sources.flags(cmd)
	o.sandboxOptions.flags(cmd)
	o.liveFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&o.mode, "mode", "", "mend|clone|rebuild|reseed|live")
	f.StringVarP(&o.out, "output", "o", "", "all but live: folder for the new data dirs; must not exist")
	f.BoolVar(&o.upgrade, "allow-upgrade", false, "reseed: allow data dirs that a newer etcd minor version wrote; "+
		"older servers cannot open them any more")
	offer(cmd, "mode", modes...)
	return cmd
}

var modes = []string{string(plan.MendFiles), string(plan.Clone), string(plan.Rebuild), string(plan.Reseed),
	string(plan.Live)}

func (o *repairApplyOptions) liveFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringSliceVar(&o.live.Endpoints, "endpoints", nil, "live: client URLs of the members, or NAME=URL; those of "+
		"members that are down too")
	clusterFlag(cmd, new(bool))
	f.StringVar(&o.live.CACert, "cacert", "", "live: verify the servers with this CA bundle (PEM)")
	f.StringVar(&o.live.Cert, "cert", "", "live: client certificate (PEM)")
	f.StringVar(&o.live.Key, "key", "", "live: key of the client certificate (PEM)")
	f.StringVar(&o.live.User, "user", "", "live: user with role root; NAME:PASSWORD is accepted too, but others can "+
		"see a command line")
	f.StringVar(&o.password, "password-file", "", "live: file with the password of --user (or set "+
		"ETCD_MEDIC_PASSWORD; else it is asked for)")
	f.StringVar(&o.live.HookStop, "hook-stop", "", "live: shell command that stops a member")
	f.StringVar(&o.live.HookWipe, "hook-wipe", "", "live: shell command that moves a member's data dir aside")
	f.StringVar(&o.live.HookStart, "hook-start", "", "live: shell command that starts a member")
	f.DurationVar(&o.live.HookTimeout, "hook-timeout", 5*time.Minute, "live: how long a hook may run")
	f.DurationVar(&o.live.QuorumWait, "quorum-wait", 10*time.Minute, "live: how long a step waits for voters that "+
		"are down before the run gives up; at a terminal you are asked instead")
	f.StringArrayVar(&o.dataDirs, "data-dir", nil, "live: NAME=PATH (or PATH for all) of the data dir on the "+
		"member's host, passed to hooks; repeatable")
	f.StringVar(&o.live.Backup, "backup", "", "live: file for the snapshot that is taken first; snapshots of members "+
		"that are removed get this name plus their own (default: next to the plan)")
	f.BoolVar(&o.live.SkipSaves, "no-member-snapshots", false,
		"live: do not save a snapshot of each member that is removed")
	f.BoolVar(&o.live.AcceptLost, "accept-lost-writes", false, "live: continue although members to be removed "+
		"applied writes that the plan does not list")
}

// prepare checks the flags against the mode.
func (o *repairApplyOptions) prepare(ctx context.Context, s *Streams, args []string) error {
	switch {
	case o.mode == "":
		return usagef(modeHint(args[0]), "--mode is missing: the way of the plan that is applied")
	case !slices.Contains(modes, o.mode):
		return usagef("--mode "+strings.Join(modes, ", --mode ")+"; see the ways in the plan", "%q is not a "+
			"mode", o.mode)
	}
	live := o.mode == string(plan.Live)
	if !live && o.out == "" {
		return usagef("-o DIR", "the folder for the new data dirs is missing")
	}
	if live && len(o.live.Endpoints) == 0 {
		return usagef("--endpoints URL,…", "--mode live needs the endpoints of the running members")
	}
	given := o.walDirs
	if live {
		o.live.WALDirs, o.walDirs = hostWALDirs(given, args[1:])
	}
	err := o.parse(args[1:])
	if o.walDirs = given; err != nil {
		return err
	}
	o.file, o.Specs, o.AllowUpgrade = args[0], o.specs, o.upgrade
	if live {
		if err := o.login(ctx, s); err != nil {
			return err
		}
	}
	o.live.DataDirs = map[string]string{"": "/var/lib/etcd"}
	for _, d := range o.dataDirs {
		name, path, ok := strings.Cut(d, "=")
		if !ok {
			name, path = "", d
		}
		o.live.DataDirs[name] = path
	}
	o.live.Notice = func(text string) { s.notef("%s", text) }
	if s.In != nil {
		o.live.Prompt = s.prompt()
	}
	return o.fill(s)
}

// sameAgain are the endpoints, flags and sources of a live repair for the command that continues it. It leaves out the
// password, and consents, which are for what was shown then.
func sameAgain(f *pflag.FlagSet, endpoints, sources []string) shell.Command {
	out := shell.Command{}.With("--endpoints", strings.Join(endpoints, ","))
	f.Visit(func(f *pflag.Flag) {
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, v := range values {
			switch f.Name {
			case "user":
				v, _, _ = strings.Cut(v, ":")
			case "cacert", "cert", "key", "password-file", "backup", "verify-with":
				v = absolute(v)
			case "hook-stop", "hook-wipe", "hook-start", "hook-timeout", "data-dir", "quorum-wait", "wal-dir":
			case "no-member-snapshots":
				out = out.With("--" + f.Name + "=" + v)
				continue
			default:
				continue
			}
			out = out.With("--"+f.Name, v)
		}
	})
	for _, s := range sources {
		out = out.With(shell.Operand(s))
	}
	return out
}

// absolute is the path of a file for commands that are typed in another folder.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil && path != "" {
		return abs
	}
	return path
}

// hostWALDirs takes from --wal-dir what is not of a source: the WAL folders on the members' hosts.
func hostWALDirs(given, sources []string) (hosts map[string]string, rest []string) {
	hosts = map[string]string{}
	for _, g := range given {
		name, path, ok := strings.Cut(g, "=")
		if !ok {
			name, path = "", g
		}
		ofSource := slices.ContainsFunc(sources, func(s string) bool {
			return name == "" && len(sources) == 1 || name != "" && strings.HasPrefix(s, name+"=")
		})
		if ofSource {
			rest = append(rest, g)
		} else {
			hosts[name] = path
		}
	}
	return hosts, rest
}

// modeHint is the command of the way that the plan recommends, or the modes if the plan cannot be read.
func modeHint(file string) string {
	if p, err := plan.Load(file); err == nil {
		if all := p.ApplyCommands(file); len(all) > 0 {
			return all[0].String()
		}
	}
	return "--mode " + strings.Join(modes, ", --mode ") + "; see the ways in the plan"
}

func runRepairApply(ctx context.Context, o *repairApplyOptions) error {
	o.io.heldPlan(o.file, o.specs)
	out, err := run.Apply(ctx, o.file, run.ApplyOptions{Options: o.Options, Mode: plan.Mode(o.mode),
		Out: o.out, Live: o.live})
	next := []shell.Command{plan.DiagnoseCommand()}
	if o.out != "" {
		next = append([]shell.Command{shell.Format("etcd-medic diagnose {}", shell.Operand(o.out))}, next...)
	}
	return o.outcome(o.file, out, err, next)
}
