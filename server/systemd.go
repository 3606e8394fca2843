package server

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/stele-id/stele"
)

// The first file that systemd hands over (sd_listen_fds(3)).
const firstHandedOver = 3

// handedOverNames are the names of sockets that systemd may open for us, in the order
// in which they are taken if it does not name them.
var handedOverNames = []string{"http", "metrics", "https"}

// handedOver returns the sockets that systemd opened for this process, by their names. It
// removes the variables that name them, so that child processes do not inherit them.
func handedOver() (map[string]net.Listener, error) {
	count, err := strconv.Atoi(os.Getenv("LISTEN_FDS"))
	pid, names := os.Getenv("LISTEN_PID"), strings.Split(os.Getenv("LISTEN_FDNAMES"), ":")
	for _, name := range []string{"LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"} {
		_ = os.Unsetenv(name) // of a name without = or NUL it can't fail
	}
	if err != nil || pid != strconv.Itoa(os.Getpid()) {
		return nil, nil
	}
	found := map[string]net.Listener{}
	for i := range min(count, len(handedOverNames)) {
		name := handedOverNames[i]
		if i < len(names) && slices.Contains(handedOverNames, names[i]) {
			name = names[i]
		}
		file := os.NewFile(uintptr(firstHandedOver+i), name)
		l, err := net.FileListener(file)
		_ = file.Close() // the listener has its own copy
		if err != nil {
			return nil, stele.Messagef("server.systemd-socket-unusable", "the socket {socket} that systemd handed over can't be used: {cause}", name, err)
		}
		found[name] = l
	}
	return found, nil
}

// notify tells systemd what state the process is in (sd_notify(3)), if systemd asks.
func notify(state string) error {
	socket := os.Getenv("NOTIFY_SOCKET")
	if socket == "" {
		return nil
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Write([]byte(state))
	return err
}

// reloading is the state of a process that reads its configuration again. systemd
// wants to know since when, by the clock that never steps (sd_notify(3)).
func reloading() string {
	return fmt.Sprintf("RELOADING=1\nMONOTONIC_USEC=%d", monotonic().Microseconds())
}
