package client

// paradisecZone is the example as it is published in the names layout.
const paradisecZone = `
paradisec.urn.example. 3600 NAPTR 100 10 "" "" "!^urn:paradisec:([-_a-z0-9]{1,63}):([-_a-z0-9]{1,63}):([-_a-z0-9]{1,63})$!\\3.\\2.\\1.paradisec.example.!i" .
paradisec.urn.example. 3600 NAPTR 200 10 "s" "thttp+N2L+N2C+N2R" "" _http._tcp.paradisec.example.
a.001.ab1.paradisec.example. 60 NAPTR 100 10 "RES:https" "N2L:text/html" "!^urn:paradisec:ab1:001:a$!https://data.example/ab1/001/a.html!i" .
a.001.ab1.paradisec.example. 60 NAPTR 100 20 "RES:https" "N2L:audio/wav" "!^urn:paradisec:ab1:001:a$!https://store.example/ab1/001/a.wav!i" .
a.001.ab1.paradisec.example. 60 NAPTR 100 30 "RES:ftp" "N2L:audio/mpeg" "!^urn:paradisec:ab1:001:a$!ftp://store.example/ab1/001/a.mp3!i" .
a.001.ab1.paradisec.example. 60 NAPTR 100 40 "RES:https" "N2C:application/ld+json" "!^urn:paradisec:ab1:001:a$!https://data.example/ab1/001/a.json!i" .
a.001.ab1.paradisec.example. 60 NAPTR 100 50 "RES:https" "N2S:ED25519" "!^urn:paradisec:ab1:001:a$!https://data.example/ab1/001/a.sig!i" .
a.001.ab1.paradisec.example. 60 NAPTR 100 60 "RES:https" "N2P" "!^urn:paradisec:ab1:001:a$!https://data.example/promise!i" .
gone.001.ab1.paradisec.example. 60 NAPTR 100 10 "RES:https" "N2P" "!^urn:paradisec:ab1:001:gone$!https://data.example/gone!i" .
gone.001.ab1.paradisec.example. 60 TXT "withdrawn=2024-05-17T10:00:00Z" "reason=the tape is lost; nobody has " "a copy" "replacement=urn:paradisec:ab1:001:a"
shared.001.ab1.paradisec.example. 60 NAPTR 100 10 "RES:https" "N2P" "!^urn:paradisec:ab1:001:gone$!https://data.example/gone!i" .
shared.001.ab1.paradisec.example. 60 TXT "id=urn:paradisec:ab1:001:other" "withdrawn=2024-05-17T10:00:00Z"
`

// thesisZones are the thesis's figures 7.10 to 7.15 as a name server serves them that
// takes them: a pattern alone, and a URL for a name. Character classes are POSIX's.
const thesisZones = `
urn.arpa. NAPTR 100 10 "" "N2L+N2P+N2C+N2S" "urn:paradisec:[^\"&<>]+:[^\"&<>]+:[^\"&<>]+" ns1.paradisec.org.au.
ns1.paradisec.org.au. NAPTR 300 10 "" "N2L+N2P+N2C+N2S" "urn:paradisec:jc1:[^\"&<>]+" jc1.collections.paradisec.org.au.
ns1.paradisec.org.au. NAPTR 100 10 "" "N2L+N2P+N2C+N2S" "urn:paradisec:ab1:[^\"&<>]+" ab1.collections.paradisec.org.au.
ab1.collections.paradisec.org.au. NAPTR 100 10 "DIS:NAPTR" "N2L+N2P+N2C+N2S" "urn:paradisec:ab1:[^\"&<>]+" ab1.arts.unisyd.edu.au.
ab1.collections.paradisec.org.au. NAPTR 200 10 "DIS:A" "N2L+N2P+N2C+N2S" "urn:paradisec:ab1:[^\"&<>]+" 150.203.0.178.
ab1.arts.unisyd.edu.au. NAPTR 100 10 "" "N2L+N2C+N2S+N2P" "urn:paradisec:ab1:001:.*" torres.unisyd.edu.au.
torres.unisyd.edu.au. NAPTR 100 10 "RES:http" "N2L:text/html" "urn:paradisec:ab1:001:a" http://dataserv.unisyd.edu.au/ab1/001/a.html.
torres.unisyd.edu.au. NAPTR 100 20 "RES:http" "N2L:audio/wav" "urn:paradisec:ab1:001:a" http://store.anu.edu.au/ab1/001/a.wav.
torres.unisyd.edu.au. NAPTR 100 30 "RES:http" "N2C" "urn:paradisec:ab1:001:a" http://dataserv.unisyd.edu.au/ab1/001/a.xml.
torres.unisyd.edu.au. NAPTR 100 40 "RES:http" "N2S:RSA" "urn:paradisec:ab1:001:a" http://store.anu.edu.au/ab1/001/a.rsa.
torres.unisyd.edu.au. NAPTR 100 50 "RES:ftp" "N2P" "urn:paradisec:ab1:001:a" ftp://store.anu.edu.au/ab1/001/a.txt.
`
