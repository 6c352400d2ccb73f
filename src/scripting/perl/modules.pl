# The modules that perf's scripts in Perl use. They are marked as loaded, so that `use` finds them.

package Perf::Trace::Core;

our @EXPORT = qw(define_flag_field define_flag_value flag_str dump_flag_fields
    define_symbolic_field define_symbolic_value symbol_str dump_symbolic_fields trace_flag_str);

# By event and field: the delimiter of flags, and the names of values.
our (%flag_fields, %symbolic_fields);

sub define_flag_field {
    my ($event, $field, $delimiter) = @_;
    $flag_fields{$event}{$field}{delim} = $delimiter;
}

sub define_flag_value {
    my ($event, $field, $value, $name) = @_;
    $flag_fields{$event}{$field}{values}{$value} = $name;
}

sub define_symbolic_field {
    my ($event, $field) = @_;
    $symbolic_fields{$event}{$field} //= {};
}

sub define_symbolic_value {
    my ($event, $field, $value, $name) = @_;
    $symbolic_fields{$event}{$field}{values}{$value} = $name;
}

# The names of the bits of a value, in order of the bits; the name of zero if no bit is set.
sub names {
    my ($values, $value) = @_;
    return grep { defined } $values->{0} unless $value;
    my @names;
    for my $bits (sort { $a <=> $b } keys %$values) {
        next unless $bits && ($value & $bits) == $bits;
        push @names, $values->{$bits};
        $value &= ~$bits;
    }
    return @names;
}

sub flag_str {
    my ($event, $field, $value) = @_;
    my $known = exists $flag_fields{$event} ? $flag_fields{$event}{$field} : undef;
    return "" unless $known;
    my $delimiter = $known->{delim};
    return join(defined $delimiter && length $delimiter ? " $delimiter " : "", names($known->{values} // {}, $value));
}

sub symbol_str {
    my ($event, $field, $value) = @_;
    return undef unless exists $symbolic_fields{$event} && exists $symbolic_fields{$event}{$field};
    return ($symbolic_fields{$event}{$field}{values} // {})->{$value};
}

my %trace_flags = (0 => "NONE", 1 => "IRQS_OFF", 2 => "IRQS_NOSUPPORT", 4 => "NEED_RESCHED", 8 => "HARDIRQ",
    16 => "SOFTIRQ");

sub trace_flag_str {
    return join(" | ", names(\%trace_flags, $_[0]));
}

sub dump_fields {
    my ($fields) = @_;
    for my $event (sort keys %$fields) {
        print "event $event:\n";
        for my $field (sort keys %{$fields->{$event}}) {
            my $known = $fields->{$event}{$field} // {};
            print "    field: $field:\n";
            print "        delim: $known->{delim}\n" if defined $known->{delim};
            my $values = $known->{values} // {};
            print "        value $_: $values->{$_}\n" for sort { $a <=> $b } keys %$values;
        }
    }
}

sub dump_flag_fields { dump_fields(\%flag_fields) }
sub dump_symbolic_fields { dump_fields(\%symbolic_fields) }

package Perf::Trace::Util;

our @EXPORT = qw(avg nsecs nsecs_secs nsecs_nsecs nsecs_str clear_term);

sub avg { $_[0] / $_[1] }
sub nsecs { $_[0] * 1_000_000_000 + $_[1] }
sub nsecs_secs { $_[0] / 1_000_000_000 }
sub nsecs_nsecs { $_[0] % 1_000_000_000 }
sub nsecs_str { sprintf("%5u.%09u", nsecs_secs($_[0]), nsecs_nsecs($_[0])) }
sub clear_term { print "\x1b[H\x1b[2J" }

package Perf::Trace::Context;

our @EXPORT = qw(common_pc common_flags common_lock_depth);
# Preemption count, flags and lock depth of the current event.
our @current = (0, 0, 0);

sub common_pc { $current[0] }
sub common_flags { $current[1] }
sub common_lock_depth { $current[2] }

package main;

# `use MODULE` calls MODULE->import, which exports the functions to the caller.
for my $module (qw(Core Util Context)) {
    no strict "refs";
    my $package = "Perf::Trace::$module";
    $INC{"Perf/Trace/$module.pm"} = "<$package>";
    *{"${package}::import"} = sub {
        my ($own, @names) = @_;
        my $caller = caller;
        my %exported = map { $_ => 1 } @{"${package}::EXPORT"};
        for my $name (@names ? map { s/^&//r } grep { !/^:/ } @names : @{"${package}::EXPORT"}) {
            die "\"$name\" is not exported by the $package module\n" unless $exported{$name};
            *{"${caller}::$name"} = \&{"${package}::$name"};
        }
    };
}
