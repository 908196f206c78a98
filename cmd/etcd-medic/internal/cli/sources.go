package cli

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
)

// sources are the arguments and flags that name inputs.
type sources struct {
	specs   []evidence.Spec
	walDirs []string
	access  evidence.Access
	// args are the original arguments.
	args []string
}

// accessFlags adds the connection flags of etcdctl, for commands that read running members.
func (s *sources) accessFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.access.CACert, "cacert", "", "for https endpoints: verify the server with this CA bundle (PEM)")
	f.StringVar(&s.access.Cert, "cert", "", "for https endpoints: client certificate (PEM)")
	f.StringVar(&s.access.Key, "key", "", "for https endpoints: key of the client certificate (PEM)")
	f.StringVar(&s.access.User, "user", "", "for endpoints with auth: NAME:PASSWORD (better in ETCD_MEDIC_USER)")
}

// accessFlagsWithTLSKey adds the same flags to a command whose --key is a filter.
func (s *sources) accessFlagsWithTLSKey(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.access.CACert, "cacert", "", "for https endpoints: verify the server with this CA bundle (PEM)")
	f.StringVar(&s.access.Cert, "cert", "", "for https endpoints: client certificate (PEM)")
	f.StringVar(&s.access.Key, tlsKey, "", "for https endpoints: key of the client certificate (PEM); --key is a key "+
		"of the database here")
	f.StringVar(&s.access.User, "user", "", "for endpoints with auth: NAME:PASSWORD (better in ETCD_MEDIC_USER)")
}

// tlsKey replaces etcdctl's --key in such a command.
const tlsKey = "tls-key"

func (s *sources) flags(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&s.walDirs, "wal-dir", nil, "WAL folder outside the data dir, as NAME=PATH (or PATH "+
		"for a single source); repeatable")
}

// parse reads [NAME=]WHERE arguments and joins them with --wal-dir.
func (s *sources) parse(args []string) error {
	s.specs, s.args = nil, args
	for _, a := range args {
		spec, err := evidence.ParseSpec(a)
		if err != nil {
			return usagef("see etcd-medic help sources", "%v", err)
		}
		s.specs = append(s.specs, spec)
	}
	for _, w := range s.walDirs {
		if err := s.join(w); err != nil {
			return err
		}
	}
	return nil
}

// parseFiles is parse for commands that need a data dir or a log, which a running member does not provide.
func (s *sources) parseFiles(cmd *cobra.Command, args []string) error {
	if err := s.parse(args); err != nil {
		return err
	}
	for _, spec := range s.specs {
		if evidence.IsEndpoint(spec.Where) {
			return usagef("copy its data dir with etcd-medic collect, and name the copy",
				"%s is a running member: it sends a snapshot without log, and %s needs the files", spec.Where,
				cmd.CommandPath())
		}
	}
	return nil
}

// given returns the arguments and flags that name the same sources in another command, without passwords.
func (s *sources) given() []string { return append(slices.Clone(s.args), s.flagsGiven()...) }

// flagsGiven returns the flags used to read sources. Certificates were used for running members only: variables set
// them for any source, and commands that read files have no such flags, or a filter of the same name.
func (s *sources) flagsGiven() []string {
	out := s.walDirsGiven()
	if !slices.ContainsFunc(s.specs, func(sp evidence.Spec) bool { return evidence.IsEndpoint(sp.Where) }) {
		return out
	}
	for _, f := range [][2]string{{"--cacert", s.access.CACert}, {"--cert", s.access.Cert}, {"--key", s.access.Key}} {
		if f[1] != "" {
			out = append(out, f[0], f[1])
		}
	}
	return out
}

func (s *sources) walDirsGiven() (out []string) {
	for _, w := range s.walDirs {
		out = append(out, "--wal-dir", w)
	}
	return out
}

func (s *sources) join(walDir string) error {
	w, err := evidence.ParseSpec(walDir)
	if err != nil {
		return usagef("want --wal-dir NAME=PATH", "--wal-dir: %v", err)
	}
	if w.Name == "" && len(s.specs) == 1 {
		s.specs[0].WALDir = w.Where
		return nil
	}
	if w.Name == "" {
		return usagef("want --wal-dir NAME=PATH, with the NAME of a source given as NAME=PATH",
			"--wal-dir %s does not say whose it is", walDir)
	}
	i := slices.IndexFunc(s.specs, func(sp evidence.Spec) bool { return sp.Name == w.Name })
	if i < 0 {
		return usagef("name the source: "+w.Name+"=PATH", "--wal-dir %s: no source is named %s", walDir, w.Name)
	}
	s.specs[i].WALDir = w.Where
	return nil
}

// failOn is the flag value of --fail-on: a severity, or never.
type failOn string

// String returns the severity, or never.
func (f *failOn) String() string { return string(*f) }

// Type names the flag's argument in the help.
func (f *failOn) Type() string { return "severity" }

// Set accepts a severity or never.
func (f *failOn) Set(v string) error {
	if v != "never" && check.Severity(v).Rank() < 0 {
		return fmt.Errorf("%q is not a severity (want info, warning, error, critical or never)", v)
	}
	*f = failOn(v)
	return nil
}

// reached reports whether a finding of this severity makes the command fail.
func (f failOn) reached(s check.Severity) bool {
	return f != "never" && s.Rank() >= check.Severity(f).Rank()
}

func (f *failOn) flag(cmd *cobra.Command) {
	*f = failOn(check.Error)
	cmd.Flags().Var(f, "fail-on", "lowest severity of a finding that gives exit code 3: "+
		"info|warning|error|critical|never")
	offer(cmd, "fail-on", "info", "warning", "error", "critical", "never")
}
