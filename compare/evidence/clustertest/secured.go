package clustertest

import (
	"net"
	"net/url"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// operator is the certificate that clients of a cluster with TLS show.
const operator = "operator"

// scheme is that of the members' URLs.
func (c *Cluster) scheme() string {
	if c.opts.TLS {
		return "https://"
	}
	return "http://"
}

// tlsFlags are the flags with which a member speaks TLS to clients and peers.
func (m *member) tlsFlags() []string {
	if !m.c.opts.TLS {
		return nil
	}
	a := m.c.authority
	cert, key, ca := a.File(m.name), a.File(m.name+"-key"), a.File("ca")
	return []string{"--cert-file", cert, "--key-file", key, "--client-cert-auth", "--trusted-ca-file", ca,
		"--peer-cert-file", cert, "--peer-key-file", key, "--peer-client-cert-auth", "--peer-trusted-ca-file", ca}
}

// host is the IP address in a URL.
func host(address string) net.IP {
	u, err := url.Parse(address)
	if err != nil {
		return nil
	}
	return net.ParseIP(u.Hostname())
}

// Certificates are the files with which a client reaches a cluster with TLS; empty without.
func (c *Cluster) Certificates() (ca, cert, key string) {
	if !c.opts.TLS {
		return "", "", ""
	}
	return c.authority.File("ca"), c.authority.File(operator), c.authority.File(operator + "-key")
}

// EnableAuth makes the user root and turns auth on; later clients log in as root. It returns NAME:PASSWORD.
func (c *Cluster) EnableAuth() string {
	c.t.Helper()
	const user, password = "root", "correct horse"
	c.with(0, "enabling auth", func(s session) error {
		for _, do := range []func() error{
			func() error { _, err := s.cli.UserAdd(s.ctx, user, password); return err },
			func() error { _, err := s.cli.RoleAdd(s.ctx, user); return err },
			func() error { _, err := s.cli.UserGrantRole(s.ctx, user, user); return err },
			func() error { _, err := s.cli.RoleAdd(s.ctx, "app"); return err },
			func() error {
				_, err := s.cli.RoleGrantPermission(s.ctx, "app", "/app/", clientv3.GetPrefixRangeEnd("/app/"),
					clientv3.PermissionType(clientv3.PermReadWrite))
				return err
			},
			func() error { _, err := s.cli.AuthEnable(s.ctx); return err },
		} {
			if err := do(); err != nil {
				return err
			}
		}
		return nil
	})
	c.Login(user, password)
	return user + ":" + password
}
