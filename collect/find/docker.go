package find

import (
	"cmp"
	"encoding/json"
	"net"
	"net/url"
	"path"
	"strings"
)

// container is the part of a container's configuration that is used (moby, container/container.go).
type container struct {
	Name   string
	Path   string
	Args   []string
	Config struct {
		Env        []string
		WorkingDir string
	}
	MountPoints     map[string]struct{ Source, Destination string }
	NetworkSettings struct {
		Networks map[string]*struct{ IPAddress string }
		Ports    map[string][]struct{ HostIP, HostPort string }
	}
}

// docker reads the configuration of containers.
func (h host) docker() (out []Member) {
	var daemon struct {
		DataRoot string `json:"data-root"`
	}
	if json.Unmarshal(h.read("/etc/docker/daemon.json"), &daemon) != nil || !path.IsAbs(daemon.DataRoot) {
		daemon.DataRoot = "/var/lib/docker"
	}
	for _, file := range h.glob(path.Join(daemon.DataRoot, "containers/*/config.v2.json")) {
		var c container
		if err := json.Unmarshal(h.read(file), &c); err != nil || !runsEtcd(c.Path, c.Args) {
			continue
		}
		var mounts []mount
		for _, m := range c.MountPoints {
			mounts = append(mounts, mount{m.Destination, m.Source})
		}
		s := settings{}
		s.args(c.Args)
		s.environ(c.Config.Env)
		at := onHost(mounts)
		m := h.member("Docker container "+strings.TrimPrefix(c.Name, "/"), file, s, func(p string) string {
			if p != "" && !path.IsAbs(p) {
				p = path.Join("/", c.Config.WorkingDir, p)
			}
			return at(p)
		})
		m.Endpoint = c.fromHost(m.Endpoint)
		out = append(out, m)
	}
	return out
}

// fromHost returns where a loopback URL of the container is reached from its host: at the port that is published for
// it, else at the container's own address. Other URLs, and those in the network of the host, stay as they are.
func (c *container) fromHost(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil || c.NetworkSettings.Networks["host"] != nil || !isLoopback(u.Hostname()) {
		return endpoint
	}
	if published := c.NetworkSettings.Ports[u.Port()+"/tcp"]; len(published) > 0 {
		ip := net.ParseIP(published[0].HostIP)
		if ip == nil || ip.IsUnspecified() {
			ip = net.IPv4(127, 0, 0, 1)
		}
		u.Host = net.JoinHostPort(ip.String(), published[0].HostPort)
		return u.String()
	}
	own := ""
	for _, n := range c.NetworkSettings.Networks {
		if n != nil && n.IPAddress != "" {
			own = cmp.Or(min(own, n.IPAddress), n.IPAddress)
		}
	}
	if own != "" {
		u.Host = net.JoinHostPort(own, u.Port())
	}
	return u.String()
}

func isLoopback(name string) bool {
	ip := net.ParseIP(name)
	return name == "localhost" || ip != nil && ip.IsLoopback()
}

// runsEtcd reports whether a command line starts etcd.
func runsEtcd(program string, args []string) bool {
	if path.Base(program) == "etcd" {
		return true
	}
	for _, a := range args {
		if path.Base(a) == "etcd" {
			return true
		}
	}
	return false
}
