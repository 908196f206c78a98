package restore

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/etcd-medic/etcd-medic/internal/regular"
	"github.com/etcd-medic/etcd-medic/internal/yamldoc"
)

// Plan describes the new cluster. As a file it is YAML (or JSON).
type Plan struct {
	// Token is the initial cluster token, which is part of all IDs. "" derives one from the backup.
	Token string `yaml:"token,omitempty"`
	// Members are the new members; none means those of the backup.
	Members []PlanMember `yaml:"members"`
	// DataDir is the path of each member's dir on its host, where {name} is replaced by its name. Only the start
	// commands use it; "" names the dirs where they were written.
	DataDir string `yaml:"dataDir,omitempty"`
}

// PlanMember is one member of a Plan.
type PlanMember struct {
	Name     string   `yaml:"name"`
	PeerURLs []string `yaml:"peerURLs"`
	// ClientURLs are only for the start command: a member publishes its own when it starts.
	ClientURLs []string `yaml:"clientURLs,omitempty"`
}

// maxPlan bounds a plan file in bytes.
const maxPlan = 1 << 20

// ReadPlan reads a plan file. Unknown fields are errors, so that a misspelled one is not silently ignored.
func ReadPlan(path string) (Plan, error) {
	b, err := regular.ReadFile(path, maxPlan)
	if err != nil {
		return Plan{}, err
	}
	if err := yamldoc.Check(b); err != nil {
		return Plan{}, fmt.Errorf("plan %s: %w", path, err)
	}
	var p Plan
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	if err := d.Decode(&p); err != nil && !errors.Is(err, io.EOF) {
		return Plan{}, fmt.Errorf("plan %s: %w", path, err)
	}
	return p, nil
}

// ParseInitialCluster reads NAME=URL,NAME=URL as in --initial-cluster of etcd; a name given twice has two peer URLs.
func ParseInitialCluster(s string) ([]PlanMember, error) {
	var out []PlanMember
	for _, part := range strings.Split(s, ",") {
		name, u, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok || name == "" || u == "" {
			return nil, fmt.Errorf("%q is not NAME=PEER-URL", part)
		}
		i := slices.IndexFunc(out, func(m PlanMember) bool { return m.Name == name })
		if i < 0 {
			out = append(out, PlanMember{Name: name})
			i = len(out) - 1
		}
		out[i].PeerURLs = append(out[i].PeerURLs, u)
	}
	return out, nil
}

// check refuses an invalid cluster, and returns notes about unusual settings.
func (p *Plan) check() (notes []string, err error) {
	if len(p.Members) == 0 {
		return nil, refusef("name the members with --initial-cluster or --plan", "no members are named, and the "+
			"backup holds none")
	}
	names, urls := map[string]bool{}, map[string]string{}
	for _, m := range p.Members {
		if err := plainName(m.Name); err != nil {
			return nil, err
		}
		if names[m.Name] {
			return nil, refusef("give every member its own name", "two members are named %s", m.Name)
		}
		names[m.Name] = true
		if len(m.PeerURLs) == 0 {
			return nil, refusef("", "member %s has no peer URL", m.Name)
		}
		for _, u := range m.PeerURLs {
			if err := peerURL(u); err != nil {
				return nil, refusef("as in http://10.0.0.1:2380", "member %s: %v", m.Name, err)
			}
			if other := urls[u]; other != "" {
				return nil, refusef("give every member its own peer URL", "members %s and %s have the same peer URL %s",
					other, m.Name, u)
			}
			urls[u] = m.Name
			if local(u) && len(p.Members) > 1 {
				notes = append(notes, fmt.Sprintf("peer URL %s of %s reaches no other host", u, m.Name))
			}
		}
	}
	if len(p.Members)%2 == 0 {
		notes = append(notes, fmt.Sprintf("%d members tolerate no more failures than %d", len(p.Members),
			len(p.Members)-1))
	}
	return notes, nil
}

// plainName refuses names that cannot be a folder.
func plainName(n string) error {
	if n == "" || n == "." || n == ".." || strings.ContainsAny(n, "/\\=,\x00") || strings.HasSuffix(n, ".partial") {
		return refusef("", "member name %q cannot be the name of a folder", n)
	}
	return nil
}

// peerURL checks a URL like etcd (client/pkg/types/urls.go): scheme, host with port, nothing after them.
func peerURL(s string) error {
	u, err := url.Parse(s)
	if err != nil {
		return err
	}
	switch u.Scheme {
	case "http", "https":
		if _, port, err := net.SplitHostPort(u.Host); err != nil || port == "" {
			return fmt.Errorf("%s has no port", s)
		}
	case "unix", "unixs":
		return nil
	default:
		return fmt.Errorf("%s is neither http nor https", s)
	}
	if u.Path != "" {
		return fmt.Errorf("%s has a path", s)
	}
	return nil
}

func local(s string) bool {
	u, err := url.Parse(s)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && (ip.IsLoopback() || ip.IsUnspecified())
}
