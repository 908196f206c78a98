package isolation

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// namespaceAttributes returns the ways to start an agent, best first. Root needs no user namespace, and without one it
// can still read files of other users. Other users, and root in a container without privileges, need a user namespace
// to create the other namespaces.
func namespaceAttributes() []*syscall.SysProcAttr {
	const wanted = syscall.CLONE_NEWNET | syscall.CLONE_NEWNS
	user := &syscall.SysProcAttr{
		Cloneflags:  wanted | syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	}
	if os.Geteuid() != 0 {
		return []*syscall.SysProcAttr{user}
	}
	return []*syscall.SysProcAttr{{Cloneflags: wanted}, user}
}

// enter sets up the new namespaces of this process and returns its Runtime.
func enter(dir string) (*local, error) {
	if err := onlyLoopback(); err != nil {
		return nil, err
	}
	if err := loopbackUp(); err != nil {
		return nil, fmt.Errorf("bring lo up: %w", err)
	}
	var notes []string
	if err := allLocal(); err != nil {
		notes = append(notes, fmt.Sprintf("no local route in the namespace (%v): addresses outside are unreachable "+
			"instead of refused", err))
	}
	const dnsPort = "127.0.0.1:53"
	merr := ownNames(dir)
	l, err := newLocal(dnsPort)
	if err != nil && merr == nil {
		merr = err
	}
	if err != nil {
		l, err = newLocal("127.0.0.1:0")
	}
	if err != nil {
		return nil, err
	}
	if merr != nil {
		notes = append(notes, fmt.Sprintf("only servers that this program contains resolve names in the sandbox (%v)",
			merr))
	}
	l.info.Namespace, l.info.Names, l.info.Notes = true, merr == nil, notes
	return l, nil
}

// onlyLoopback makes sure that the namespace is new: it contains only lo, and tunnel templates without addresses on
// some kernels.
func onlyLoopback() error {
	all, err := net.Interfaces()
	if err != nil {
		return err
	}
	for _, i := range all {
		if i.Flags&net.FlagLoopback != 0 {
			if i.Flags&net.FlagUp != 0 {
				return errors.New("lo is already up: this is not a new network namespace")
			}
			continue
		}
		if a, err := i.Addrs(); err != nil || len(a) > 0 || i.Flags&net.FlagUp != 0 {
			return fmt.Errorf("interface %s is in use: this is not a new network namespace", i.Name)
		}
	}
	return nil
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	r, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, r); err != nil {
		return err
	}
	r.SetUint16(r.Uint16() | unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, r)
}

// allLocal adds the route "local 0.0.0.0/0 dev lo". Every IPv4 address is then this machine, so no packet can leave,
// and connections to unused addresses are refused at once.
func allLocal() error {
	lo, err := net.InterfaceByName("lo")
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.Sendto(fd, routeRequest(uint32(lo.Index)), 0,
		&unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	buf := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, buf, 0)
	if err != nil {
		return err
	}
	msgs, err := syscall.ParseNetlinkMessage(buf[:n])
	if err != nil {
		return err
	}
	for _, m := range msgs {
		if m.Header.Type == unix.NLMSG_ERROR && len(m.Data) >= 4 {
			if code := int32(binary.NativeEndian.Uint32(m.Data)); code != 0 {
				return syscall.Errno(-code)
			}
		}
	}
	return nil
}

// routeRequest builds the netlink message: header, rtmsg, and the attribute with the interface.
func routeRequest(link uint32) []byte {
	const attrLen = unix.SizeofRtAttr + 4
	const size = unix.SizeofNlMsghdr + unix.SizeofRtMsg + attrLen
	b := make([]byte, 0, size)
	e := binary.NativeEndian
	b = e.AppendUint32(b, size)
	b = e.AppendUint16(b, unix.RTM_NEWROUTE)
	b = e.AppendUint16(b, unix.NLM_F_REQUEST|unix.NLM_F_ACK|unix.NLM_F_CREATE|unix.NLM_F_EXCL)
	b = e.AppendUint32(b, 1) // sequence number
	b = e.AppendUint32(b, 0) // to the kernel
	// family, destination and source length, tos, table, protocol, scope, type, flags
	b = append(b, unix.AF_INET, 0, 0, 0, unix.RT_TABLE_LOCAL, unix.RTPROT_BOOT, unix.RT_SCOPE_HOST, unix.RTN_LOCAL)
	b = e.AppendUint32(b, 0)
	b = e.AppendUint16(b, attrLen)
	b = e.AppendUint16(b, unix.RTA_OIF)
	return e.AppendUint32(b, link)
}

// ownNames mounts new files over those that configure name resolution, for servers that have no other setting.
// nsswitch.conf must not name services that use unix sockets, which work across a network namespace.
func ownNames(dir string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	files := []struct {
		name, text string
		needed     bool
	}{
		{"/etc/hosts", "127.0.0.1 localhost\n", true},
		{"/etc/resolv.conf", "nameserver 127.0.0.1\noptions timeout:1 attempts:2\n", true},
		{"/etc/nsswitch.conf", "hosts: files dns\n", false},
	}
	for _, f := range files {
		own := filepath.Join(dir, filepath.Base(f.name))
		if err := os.WriteFile(own, []byte(f.text), 0o644); err != nil {
			return err
		}
		err := unix.Mount(own, f.name, "", unix.MS_BIND, "")
		if err != nil && (f.needed || !errors.Is(err, unix.ENOENT)) {
			return fmt.Errorf("put %s over %s: %w", own, f.name, err)
		}
	}
	return nil
}
