# Runs a script for rperf: loads it, reports its functions, and calls them for the events that arrive on a pipe.
package Rperf::Shim;

use strict;
use warnings;

my ($incoming, $outgoing) = @ARGV;
my $stopped = 0;

eval { my @number = unpack("q<", "\0" x 8); 1 } or do {
    print STDERR "rperf: scripts need a perl with 64-bit integers\n";
    exit 1;
};
open(my $pipe, "<&=", $incoming) or die "pipe of events: $!\n";
open(my $answer, ">&=", $outgoing) or die "pipe of the answer: $!\n";
binmode($_) for $pipe, $answer;
# FD_CLOEXEC: programs that the script starts do not keep the pipes open.
fcntl($_, 2, 1) for $pipe, $answer;

# The next block; undef at the end of the events.
sub block {
    my ($size, $data);
    # A pipe that ends before the end of the events: rperf has failed, and has reported why.
    leave(1) unless (read($pipe, $size, 4) // 0) == 4;
    $size = unpack("L<", $size);
    return undef unless $size;
    leave(1) unless (read($pipe, $data, $size) // 0) == $size;
    return $data;
}

sub leave {
    my ($status) = @_;
    close(STDOUT) or $status ||= 1;
    require POSIX;
    POSIX::_exit($status);
}

# Names of values: for each field, its event, name, delimiter (empty for symbols), and pairs of value and name.
sub define_values {
    my ($text, $define_field, $define_value) = @_;
    for my $field (unpack("(L</a)*", $text)) {
        my ($event, $name, $delimiter, $values) = unpack("L</a L</a L</a a*", $field);
        my @values = unpack("(q< L</a)*", $values);
        $define_field->($event, $name, $delimiter);
        while (my ($value, $text) = splice(@values, 0, 2)) {
            $define_value->($event, $name, $value, $text);
        }
    }
}

# The functions of the script that rperf may call: handlers, `system::event`, and those for other events.
sub functions {
    no strict "refs";
    my @found = grep { defined &{"main::$_"} } qw(trace_unhandled process_event);
    for my $package (grep { /^[\w-]+::$/a && $_ ne "main::" } keys %main::) {
        push @found, map { "$package$_" } grep { /^[\w-]+$/a && defined &{"main::$package$_"} } keys %{"main::$package"};
    }
    return @found;
}

# Frames of a callchain: instruction pointer, and what is known of it.
sub callchain {
    my @frames;
    for my $frame (unpack("(L</a)*", $_[0])) {
        my ($ip, $has_symbol, $has_object, $rest) = unpack("Q< C C a*", $frame);
        my @rest = unpack("(L</a)*", $rest);
        my %known = (ip => $ip);
        if ($has_symbol) {
            my ($start, $end, $binding) = unpack("Q< Q< C", shift @rest);
            $known{sym} = { start => $start, end => $end, binding => $binding, name => shift @rest };
        }
        $known{dso} = shift @rest if $has_object;
        push @frames, \%known;
    }
    return \@frames;
}

# The function that decodes the values of a call, and calls the function of the script.
sub caller_of {
    my ($kind, $name, $event, $template, $attr) = @_;
    no strict "refs";
    my $function = \&{"main::$name"};
    my $context = \"context of $event";
    if ($kind eq "event") {
        return sub {
            my ($record, $sample, $has_raw, $raw) = unpack($template, $_[0]);
            $function->($record, $attr, $sample, $has_raw ? $raw : undef);
        };
    }
    return sub {
        (@Perf::Trace::Context::current[0, 1, 2], my @values) = unpack($template, $_[0]);
        $values[5] = $values[5] eq "" ? [] : callchain($values[5]);
        $function->($event, $context, @values);
    };
}

# A block that begins with 0 describes the calls, in the order of their numbers; the others are calls.
sub call_for_all {
    my @calls;
    while (!$stopped) {
        my $block = block() // last;
        if (ord($block) == 0) {
            @calls = map { length ? caller_of(unpack("(L</a)*", $_)) : undef } unpack("(L</a)*", substr($block, 1));
            next;
        }
        for my $call (unpack("(L</a)*", substr($block, 1))) {
            $calls[unpack("L<", $call)]->($call);
            last if $stopped;
        }
    }
}

sub run {
    my ($script, $flags, $symbols, @words) = unpack("(L</a)*", block() // leave(1));
    define_values($flags, \&Perf::Trace::Core::define_flag_field, \&Perf::Trace::Core::define_flag_value);
    define_values($symbols, \&Perf::Trace::Core::define_symbolic_field, \&Perf::Trace::Core::define_symbolic_value);
    $0 = $script;
    @ARGV = @words;
    require POSIX;
    $SIG{INT} = sub {
        leave(130) if $stopped;
        $stopped = 1;
    };
    # rperf blocks SIGINT, and its children inherit the signal mask.
    POSIX::sigprocmask(POSIX::SIG_UNBLOCK(), POSIX::SigSet->new(POSIX::SIGINT()));
    load($script =~ m{^/} ? $script : "./$script");
    print {$answer} '{"functions":[',
        join(",", map { "{\"name\":\"$_\",\"arguments\":-1,\"read\":null,\"keys\":null}" } functions()),
        '],"context":[]}', "\n";
    close($answer);
    main::trace_begin() if defined &main::trace_begin;
    call_for_all();
    main::trace_end() if defined &main::trace_end;
    close(STDOUT) or $! == 32 ? leave(141) : leave(1);
    exit 0;
}

# Outside the scope of this file: the script must not see its variables and pragmas.
package main;

sub Rperf::Shim::load {
    no strict;
    no warnings;
    do $_[0];
    if ($@) {
        print STDERR $@;
        exit 255;
    }
}

Rperf::Shim::run();
