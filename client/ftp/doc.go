// Package ftp reads files from FTP servers (RFC 959): in passive mode (RFC 2428), as
// they are, from any byte on (RFC 3659).
//
// It logs in anonymously, and never lists, writes or opens a port to be connected to.
// Data comes from the host that was asked, whatever address a server names: it can't
// have us connect to others. Replies are bounded in length and number, and what waits
// for the network ends with the context, or when nothing has come for too long. There is
// no clock.
package ftp
