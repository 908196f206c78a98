//go:build unix

package run

import (
	"errors"
	"os"
	"syscall"

	"github.com/etcd-medic/etcd-medic/refusal"
)

// lock keeps a second process from working with the same plan. The kernel releases it when the process ends, however it
// ends.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errors.Join(refusal.New("wait until it ends; etcd-medic repair status PLAN shows its progress",
			"another etcd-medic works with this plan (%s is locked)", path), f.Close())
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { giveBack(f) }, nil
}

// locked reports whether another process holds the lock now.
func locked(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer giveBack(f)
	return errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}

// giveBack unlocks before it closes: a process that this program is starting elsewhere also holds the file until it
// runs.
func giveBack(f *os.File) {
	_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
	_ = f.Close()
}
