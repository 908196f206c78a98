package cli

import (
	"context"
	"net"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
)

// Where --endpoints adds to the arguments of a command that reads sources.
const (
	endpointsLast  = iota // additional sources, after the named ones
	endpointsFirst        // the only source of the command, before its other arguments
	endpointsBase         // the value of --base
)

// endpointPlaces are the commands whose sources may be running members.
var endpointPlaces = map[string]int{
	"diagnose": endpointsLast, "compare": endpointsLast, "history": endpointsLast, "report": endpointsLast,
	"bundle": endpointsLast, "verify": endpointsLast, "explain": endpointsLast,
	"inspect": endpointsFirst, "dumpdb": endpointsFirst, "extract": endpointsFirst, "rebuild": endpointsBase,
}

// sourcesFromEndpoints adds --endpoints and --cluster to commands, as in etcdctl: their members are sources.
func sourcesFromEndpoints(root *cobra.Command, s *Streams) {
	for _, c := range allCommands(root) {
		place, ok := endpointPlaces[strings.TrimPrefix(c.CommandPath(), root.Name()+" ")]
		if !ok {
			continue
		}
		text := "client URLs of running members, [NAME=]URL: their snapshots are further sources"
		if place != endpointsLast {
			text = "client URL of a running member, in place of SOURCE: its snapshot is read"
		}
		c.Flags().StringSlice("endpoints", nil, text)
		clusterFlag(c, new(bool))
		args, run := c.Args, c.RunE
		c.Args = func(cmd *cobra.Command, a []string) error {
			if args == nil {
				return nil
			}
			return args(cmd, joinEndpoints(a, named(cmd, s, a), place))
		}
		c.RunE = func(cmd *cobra.Command, a []string) error {
			urls, err := s.clusterOf(cmd, named(cmd, s, a), accessOf(cmd))
			if err != nil {
				return err
			}
			if place == endpointsBase {
				return runWithBase(cmd, a, urls, run)
			}
			if place == endpointsFirst && len(urls) > 1 {
				return usagef("name one of them: "+strings.Join(urls, ", "), "%s reads one source, and --endpoints "+
					"names %d", cmd.CommandPath(), len(urls))
			}
			return run(cmd, joinEndpoints(a, urls, place))
		}
	}
}

func clusterFlag(cmd *cobra.Command, to *bool) {
	cmd.Flags().BoolVar(to, "cluster", false, "all members of the cluster: those that --endpoints lists are used")
}

// runWithBase passes the one endpoint to --base.
func runWithBase(cmd *cobra.Command, args, urls []string, run func(*cobra.Command, []string) error) error {
	base := cmd.Flags().Lookup("base")
	switch {
	case len(urls) > 1 || len(urls) == 1 && base.Changed:
		return usagef("name one of them", "%s starts from one base", cmd.CommandPath())
	case len(urls) == 1:
		if err := base.Value.Set(urls[0]); err != nil {
			return err
		}
	}
	return run(cmd, args)
}

// joinEndpoints returns the arguments with the endpoints in their place.
func joinEndpoints(args, urls []string, place int) []string {
	switch place {
	case endpointsFirst:
		return append(append([]string(nil), urls...), args...)
	case endpointsLast:
		return append(append([]string(nil), args...), urls...)
	}
	return args
}

// named returns the endpoints of the command line. The variables of etcdctl count only if no source is named: they
// never add one to the user's choice.
func named(cmd *cobra.Command, s *Streams, args []string) []string {
	f := cmd.Flags().Lookup("endpoints")
	list := f.Value.(pflag.SliceValue).GetSlice() //nolint:forcetypeassert // registered as a slice above
	if !f.Changed && !namesSource(cmd, args) {
		list = endpointsOfEnv(s)
	}
	return withScheme(list, accessOf(cmd))
}

// namesSource reports whether the arguments of a command name a source. explain and rebuild also work without one.
func namesSource(cmd *cobra.Command, args []string) bool {
	switch cmd.Name() {
	case "explain", "rebuild":
		return true
	case "history": // the key comes first
		return len(args) != 1
	}
	return len(args) > 0
}

func endpointsOfEnv(s *Streams) []string {
	for _, name := range []string{"ETCD_MEDIC_ENDPOINTS", "ETCDCTL_ENDPOINTS"} {
		if v := s.Getenv(name); v != "" {
			return strings.Split(v, ",")
		}
	}
	return nil
}

// withScheme completes HOST:PORT, which etcdctl also accepts: with TLS if a certificate is given.
func withScheme(list []string, a evidence.Access) (out []string) {
	scheme := "http://"
	if a.CACert != "" || a.Cert != "" {
		scheme = "https://"
	}
	for _, e := range list {
		name, url, ok := strings.Cut(strings.TrimSpace(e), "=")
		if !ok {
			name, url = "", name
		} else {
			name += "="
		}
		if _, _, err := net.SplitHostPort(url); err == nil && !strings.Contains(url, "://") {
			url = scheme + url
		}
		out = append(out, name+url)
	}
	return out
}

// accessOf reads the flags of a command for connecting to members.
func accessOf(cmd *cobra.Command) evidence.Access {
	value := func(name string) string {
		if f := cmd.Flags().Lookup(name); f != nil {
			return f.Value.String()
		}
		return ""
	}
	a := evidence.Access{CACert: value("cacert"), Cert: value("cert"), Key: value("key"), User: value("user")}
	if cmd.Flags().Lookup(tlsKey) != nil {
		a.Key = value(tlsKey)
	}
	return a
}

func flagIs(cmd *cobra.Command, name, value string) bool {
	f := cmd.Flags().Lookup(name)
	return f != nil && f.Value.String() == value
}

// readsEndpoints reports whether --endpoints of a command adds sources.
func readsEndpoints(cmd *cobra.Command) bool {
	_, ok := endpointPlaces[strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")]
	return ok
}

// clusterOf returns the endpoints or, with --cluster, NAME=URL of every member that they list.
func (s *Streams) clusterOf(cmd *cobra.Command, endpoints []string, a evidence.Access) ([]string, error) {
	if !flagIs(cmd, "cluster", "true") {
		return endpoints, nil
	}
	if len(endpoints) == 0 {
		return nil, usagef("--endpoints URL --cluster", "--cluster needs one endpoint to ask")
	}
	return s.membersOf(cmd.Context(), endpoints, a)
}

func (s *Streams) membersOf(ctx context.Context, endpoints []string, a evidence.Access) (out []string, _ error) {
	var urls []string
	for _, e := range endpoints {
		if _, url, ok := strings.Cut(e, "="); ok {
			e = url
		}
		urls = append(urls, e)
	}
	a.Skipped = s.skipped
	list, err := a.Members(ctx, urls)
	if err != nil {
		return nil, err
	}
	for _, m := range list {
		switch {
		case m.URL == "":
			s.notef("a member of the cluster lists no client URL: it has never started")
		case m.Name == "" || strings.ContainsAny(m.Name, "=,"):
			out = append(out, m.URL)
		default:
			out = append(out, m.Name+"="+m.URL)
		}
	}
	return out, nil
}

// bareURLs removes the names.
func bareURLs(list []string) (out []string) {
	for _, e := range list {
		if _, url, ok := strings.Cut(e, "="); ok && !strings.Contains(e[:len(e)-len(url)], "://") {
			e = url
		}
		out = append(out, e)
	}
	return out
}
