# Sends SCTP INIT packets from a raw socket, for kernels without SCTP sockets: what translates a first packet is connection
# tracking, which needs no socket. Prints "sent PORT" for each with its source port, and "refused PORT" for each that was
# answered with ICMP port unreachable.
# Waits for so many refusals, at most PATIENCE seconds, and then until none has come for SILENCE seconds.
# Usage: perl sctp-init.pl SOURCE DESTINATION PORT COUNT REFUSALS SILENCE PATIENCE; SOURCE may be "-". IPv4 only.
use strict;
use warnings;
use Socket;

my ($source, $destination, $port, $count, $refusals, $silence, $patience) = @ARGV;
# Senders that run at the same time must not meet with the same ports.
my $first = 10_000 + ($$ % 500) * 100;

sub crc32c {
    my $crc = 0xffffffff;
    for my $byte (unpack("C*", $_[0])) {
        $crc ^= $byte;
        $crc = $crc & 1 ? ($crc >> 1) ^ 0x82f63b78 : $crc >> 1 for 1 .. 8;
    }
    return $crc ^ 0xffffffff;
}

sub init_packet {
    my ($sport) = @_;
    my $chunk = pack("CCnNNnnN", 1, 0, 20, 0x1a2b3c4d, 65536, 1, 1, 1);
    my $zero = pack("nnNN", $sport, $port, 0, 0) . $chunk;
    return pack("nnNV", $sport, $port, 0, crc32c($zero)) . $chunk;
}

socket(my $icmp, PF_INET, SOCK_RAW, getprotobyname_or("icmp", 1)) or die "icmp socket: $!\n";
socket(my $raw, PF_INET, SOCK_RAW, 132) or die "sctp socket: $!\n";
if ($source ne "-") {
    bind($raw, pack_sockaddr_in(0, inet_aton($source))) or die "bind $source: $!\n";
}
for my $sport ($first .. $first + $count - 1) {
    # A packet that the node's own rules refuse cannot be sent: its ICMP answer says which.
    print "sent $sport\n";
    send($raw, init_packet($sport), 0, pack_sockaddr_in(0, inet_aton($destination)));
}

# Bounded, for others' messages come here as well. perl-base has no finer clock.
my $latest = time + $patience;
for (1 .. 1000) {
    my $ready = "";
    vec($ready, fileno($icmp), 1) = 1;
    if (!select($ready, undef, undef, $silence)) {
        last if $refusals <= 0 || time > $latest;
        next;
    }
    recv($icmp, my $packet, 2048, 0);
    my $header = (ord($packet) & 15) * 4;
    my ($type, $code) = unpack("CC", substr($packet, $header, 2));
    next unless $type == 3 && $code == 3;
    my $inner = substr($packet, $header + 8);
    next unless substr($inner, 16, 4) eq inet_aton($destination);
    my ($sport) = unpack("n", substr($inner, (ord($inner) & 15) * 4, 2));
    print "refused $sport\n";
    $refusals--;
}

sub getprotobyname_or {
    my ($name, $number) = @_;
    return scalar(getprotobyname($name)) // $number;
}
