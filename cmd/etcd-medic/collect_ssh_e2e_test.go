//go:build e2e

package main_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

// sshHost is a host that the real ssh logs in to: it runs what it is told by its shell, and has an etcd that is set up
// as a systemd unit.
type sshHost struct {
	t        *testing.T
	root     string // the host's own files
	listener net.Listener
	config   *ssh.ServerConfig
	env      []string
}

// newKey writes a throw-away key to a file, or keeps it where file is empty.
func newKey(t *testing.T, file string) ssh.Signer {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	block, err := ssh.MarshalPrivateKey(key, "test")
	must(t, err)
	if file != "" {
		must(t, os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
	}
	s, err := ssh.NewSignerFromKey(key)
	must(t, err)
	return s
}

// serve takes connections until the listener is closed.
func (h *sshHost) serve() {
	for {
		conn, err := h.listener.Accept()
		if err != nil {
			return
		}
		go h.session(conn)
	}
}

func (h *sshHost) session(conn net.Conn) {
	_ = conn.SetDeadline(time.Now().Add(5 * time.Minute))
	c, channels, requests, err := ssh.NewServerConn(conn, h.config)
	if err != nil {
		_ = conn.Close()
		return
	}
	defer func() { _ = c.Close() }()
	go ssh.DiscardRequests(requests)
	for n := range channels {
		if n.ChannelType() != "session" {
			_ = n.Reject(ssh.UnknownChannelType, "")
			continue
		}
		ch, requests, err := n.Accept()
		if err != nil {
			return
		}
		for r := range requests {
			_ = r.Reply(r.Type == "exec", nil)
			if r.Type == "exec" {
				h.exec(ch, r.Payload)
				break
			}
		}
		_ = ch.Close()
	}
}

// exec does with a command line what sshd does.
func (h *sshHost) exec(ch ssh.Channel, payload []byte) {
	var line struct{ Text string }
	if err := ssh.Unmarshal(payload, &line); err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(h.t.Context(), 4*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", line.Text)
	cmd.Env, cmd.Dir = h.env, h.root
	cmd.Stdout, cmd.Stderr = ch, ch.Stderr()
	code := uint32(0)
	if err := cmd.Run(); err != nil {
		code = 255
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			code = uint32(exit.ExitCode())
		}
	}
	_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{code}))
}

// sshHosts makes a host of each member, and an ssh that knows them. It returns the folder with ssh for PATH.
func sshHosts(t *testing.T, c *clustertest.Cluster, user string) (bin string, hosts []*sshHost) {
	t.Helper()
	real, err := exec.LookPath("ssh")
	if err != nil {
		t.Fatalf("the client of OpenSSH is needed: %v", err)
	}
	dir := t.TempDir()
	bin = filepath.Join(dir, "bin")
	must(t, os.Mkdir(bin, 0o700))
	client, known, config := newKey(t, filepath.Join(dir, "key")), "", ""
	ca, _, _ := c.Certificates()
	for i := range c.Size() {
		name := fmt.Sprintf("host%d.etcd.test", i+1)
		h := &sshHost{t: t, root: filepath.Join(dir, name)}
		for _, d := range []string{"etc/systemd/system", "var/lib", "bin"} {
			must(t, os.MkdirAll(filepath.Join(h.root, d), 0o700))
		}
		must(t, os.Symlink(c.DataDir(i), filepath.Join(h.root, "var/lib/etcd")))
		must(t, os.Symlink(filepath.Dir(ca), filepath.Join(h.root, "etc/pki")))
		must(t, os.WriteFile(filepath.Join(h.root, "etc/systemd/system/etcd.service"), fmt.Appendf(nil,
			"[Service]\nExecStart=/usr/bin/etcd --name %s --data-dir /var/lib/etcd --listen-client-urls %s "+
				"--trusted-ca-file /etc/pki/ca.pem --cert-file /etc/pki/%[1]s.pem --key-file /etc/pki/%[1]s-key.pem\n",
			c.Name(i), c.Endpoint(i)), 0o600))
		must(t, os.WriteFile(filepath.Join(h.root, "bin", "etcd-medic"), fmt.Appendf(nil,
			"#!/bin/sh\nexec '%s' \"$@\" --root '%s'\n", built(t), h.root), 0o700))
		h.env = []string{"PATH=" + filepath.Join(h.root, "bin") + ":" + os.Getenv("PATH"), "ETCD_MEDIC_USER=" + user}
		h.config = &ssh.ServerConfig{}
		h.config.PublicKeyCallback = func(_ ssh.ConnMetadata, k ssh.PublicKey) (*ssh.Permissions, error) {
			if !bytes.Equal(k.Marshal(), client.PublicKey().Marshal()) {
				return nil, errors.New("another key")
			}
			return &ssh.Permissions{}, nil
		}
		key := newKey(t, "")
		h.config.AddHostKey(key)
		h.listener, err = net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		t.Cleanup(func() { _ = h.listener.Close() })
		port := h.listener.Addr().(*net.TCPAddr).Port
		config += fmt.Sprintf("Host %s\n  HostName 127.0.0.1\n  Port %d\n", name, port)
		known += fmt.Sprintf("[127.0.0.1]:%d %s", port, ssh.MarshalAuthorizedKey(key.PublicKey()))
		go h.serve()
		hosts = append(hosts, h)
		c.Flags(i, "--advertise-client-urls", "https://"+name+":2379")
		c.Restart(i)
	}
	config += fmt.Sprintf("Host *\n  User operator\n  IdentityFile %s\n  IdentitiesOnly yes\n  UserKnownHostsFile %s\n"+
		"  StrictHostKeyChecking yes\n  BatchMode yes\n", filepath.Join(dir, "key"), filepath.Join(dir, "known"))
	must(t, os.WriteFile(filepath.Join(dir, "config"), []byte(config), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "known"), []byte(known), 0o600))
	must(t, os.WriteFile(filepath.Join(bin, "ssh"), fmt.Appendf(nil, "#!/bin/sh\nexec '%s' -F '%s' \"$@\"\n", real,
		filepath.Join(dir, "config")), 0o700))
	return bin, hosts
}

// TestE2ECollectAllSSH: the commands that collect --all --ssh prints collect every member through the real ssh, and
// with --yes it runs them itself. A host that cannot be reached fails, leaves no archive, and holds up no other.
func TestE2ECollectAllSSH(t *testing.T) {
	c := clustertest.Start(t, clustertest.Server(t, "3.6.16"), 3, clustertest.Options{TLS: true,
		Args: []string{"--heartbeat-interval=200", "--election-timeout=2000", "--bcrypt-cost=4"}})
	user := c.EnableAuth()
	for n := range 40 {
		c.Put(0, fmt.Sprintf("k%d", n), "v")
	}
	bin, hosts := sshHosts(t, c, user)
	c.WaitEqual()
	path := "PATH=" + bin + ":" + os.Getenv("PATH")
	ca, cert, key := c.Certificates()
	all := []string{"collect", "--all", "--ssh", "--endpoints", c.Endpoint(0), "--cacert", ca, "--cert", cert, "--key",
		key, "--limit-rate", "40M"}
	run := func(dir string, name string, args ...string) (string, error) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), path, "ETCD_MEDIC_USER="+user)
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, io.MultiWriter(&errs, &out)
		err := cmd.Run()
		if strings.Contains(out.String(), strings.TrimPrefix(user, "root:")) {
			t.Errorf("the password is shown:\n%s", &out)
		}
		return out.String(), err
	}
	archives := func(dir string, n int) []string {
		t.Helper()
		got, _ := filepath.Glob(filepath.Join(dir, "*"))
		if len(got) != n {
			t.Fatalf("%d archives are wanted, there are %q", n, got)
		}
		return got
	}

	pasted := t.TempDir()
	printed, err := run(pasted, built(t), all...)
	if err != nil || strings.Count(printed, "ssh -- host") != 3 || strings.Count(printed, "--limit-rate 40M") != 3 {
		t.Fatalf("%v:\n%s", err, printed)
	}
	archives(pasted, 0)
	if out, err := run(pasted, "sh", "-ec", printed); err != nil {
		t.Fatalf("%v: %s\n%s", err, printed, out)
	}
	out, err := run(pasted, built(t), append([]string{"diagnose"}, archives(pasted, 3)...)...)
	if err != nil || !strings.Contains(out, "healthy") {
		t.Errorf("%v:\n%s", err, out)
	}

	must(t, hosts[1].listener.Close())
	fetched := t.TempDir()
	out, err = run(fetched, built(t), append(all, "--yes")...)
	if err == nil || !strings.Contains(out, "host2.etcd.test") {
		t.Errorf("a host that is down is not said: %v\n%s", err, out)
	}
	out, err = run(fetched, built(t), append([]string{"diagnose"}, archives(fetched, 2)...)...)
	if err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
}
